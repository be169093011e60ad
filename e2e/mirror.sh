# shellcheck shell=bash
# nginx as a mirror of archives; sourced, not run.
#
# Gives: what check.sh does, and the functions below.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

# Administrators' programs lie where a user's search path may not lead.
export PATH=$PATH:/usr/sbin:/usr/local/sbin
exits 0 "nginx is installed" "$root/e2e/install" nginx "$target/e2e"

mkdir -p "$work/nginx/temp"
access=$work/nginx/access.log

# free_port: below those that the system hands out: nobody gets it before it is listened on, or between two starts.
free_port() {
    python3 - <<'PYTHON'
import random
import socket

with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
    end = int(file.read().split()[0])
# Where the system hands out all, one of them.
ports = random.sample(range(end // 2, end), 100) if end > 4096 else []
for port in [*ports, 0]:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            continue
        print(tried.getsockname()[1])
        break
PYTHON
}

# configures LOCATIONS: writes the configuration; $mirror is where it will listen. One process does all: it
# reads what this user may read, and a kill ends it.
configures() {
    port=${port:-$(free_port)}
    mirror=http://127.0.0.1:$port
    cat >"$work/nginx/nginx.conf" <<CONF
daemon off;
master_process off;
pid $work/nginx/nginx.pid;
events { worker_connections 256; }
http {
    access_log $access;
    client_body_temp_path $work/nginx/temp;
    proxy_temp_path $work/nginx/temp;
    fastcgi_temp_path $work/nginx/temp;
    uwsgi_temp_path $work/nginx/temp;
    scgi_temp_path $work/nginx/temp;
    sendfile on;
    server {
        listen 127.0.0.1:$port;
        $1
    }
}
CONF
}

# starts_nginx: it listens when this returns; $nginx is its process.
starts_nginx() {
    nginx -p "$work/nginx" -c "$work/nginx/nginx.conf" -e "$work/nginx/error.log" &
    nginx=$!
    for _ in {1..200}; do
        # It does not tell when it is ready.
        ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0
        kill -0 "$nginx" 2>/dev/null || break
        sleep 0.05
    done
    cat "$work/nginx/error.log" >&2
    return 1
}
