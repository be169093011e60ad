#!/usr/bin/env bash
# The files of packaging/, each checked by the program that will read it, without the internet and without a
# builder of images: man pages and completions, Dockerfile, compose file, systemd units, Kubernetes manifests.
# The workflows, and what the scripts of packaging/release make: the archive, the Debian package, installed
# into a folder, and the Homebrew formula.
# And Quipu answers behind nginx and Caddy as the examples set them up, over HTTP and WebSocket, also while
# it restarts.

# shellcheck source=e2e/mirror.sh
source "$(dirname "${BASH_SOURCE[0]}")/mirror.sh"

tools=$target/e2e
packaging=$root/packaging
python=$tools/packaging/python/bin
cd "$work"

exits 0 "checkers from PyPI are installed" "$root/e2e/install" packaging "$tools"
exits 0 "actionlint is installed" "$root/e2e/install" actionlint "$tools"
for package in dpkg-dev fakeroot; do
    exits 0 "Debian's $package is installed" "$root/e2e/install" "$package" "$tools"
done
for package in caddy mandoc zsh; do
    exits 0 "Debian's $package is unpacked" "$root/e2e/install" "debian-$package" "$tools"
done
caddy=$tools/debian/caddy/usr/bin/caddy

# silent WHAT COMMAND...: the command ends well and has nothing to say.
silent() {
    local what=$1
    shift
    if "$@" >"$output" 2>&1 && [ ! -s "$output" ]; then
        ok "$what"
    else
        not_ok "$what: it fails or says:"
        tail -n 20 "$output" >&2
    fi
}

# --- the version

exits 0 "quipu --version" "$quipu" --version
if commit=$(git -C "$root" log -1 --abbrev=12 --format='%h %cs' 2>/dev/null); then
    same "$(cat "$output")" "quipu $(sed -nE 's/^version = "(.*)"$/\1/p' "$root/Cargo.toml" | head -n 1) ($commit)" \
        "it tells the commit"
fi

# --- man pages and completions

exits 0 "man pages are written" "$quipu" man --to man/man1
for page in man/man1/*.1; do
    silent "mandoc reads $(basename "$page")" "$tools/debian/mandoc/usr/bin/mandoc" -T lint -W error "$page"
    # shellcheck disable=SC2016 # the inner shell expands it
    ! command -v man >/dev/null || silent "man reads $(basename "$page")" \
        bash -c 'LC_ALL=C.UTF-8 man --warnings --local-file "$1" >"$2"' - "$page" shown
done
for shell in bash zsh; do
    "$quipu" completions "$shell" >"completions.$shell"
done
silent "bash reads its completions" bash -n completions.bash
silent "zsh reads its completions" "$tools/debian/zsh/bin/zsh" -n completions.zsh

# --- container image and compose file

silent "hadolint has nothing to say of the Dockerfile" "$python/hadolint" "$packaging/Dockerfile"
exits 0 "the compose file fits its schema" "$python/check-jsonschema" \
    --builtin-schema vendor.compose-spec "$packaging/compose.yaml"
exits 0 "so does the one with readers of a bucket" "$python/check-jsonschema" \
    --builtin-schema vendor.compose-spec "$packaging/compose-readers.yaml"
# What the last stage of the image has: the C library, libgcc and what starts a program.
ldd "$quipu" | awk '{ print $1 }' | xargs -n 1 basename | sort >libraries
same "$(grep -vE '^(linux-vdso|libgcc_s|libm|libc|ld-linux-x86-64|ld-linux-aarch64)\.so' libraries)" "" \
    "the binary needs no library that the image lacks"
# What the context lets in is a workspace: nothing that it names is missing.
mapfile -t paths < <(sed -E '/^(#|\*$)/d; s/^([^!])/:(exclude,glob)\1/; s/^!//' "$packaging/Dockerfile.dockerignore")
mkdir context
(cd "$root" && git ls-files -z -- "${paths[@]}" | tar --create --null --files-from=-) |
    tar --extract --directory context
exits 0 "cargo knows the workspace from what the image is built of" cargo metadata --offline --locked \
    --no-deps --format-version 1 --manifest-path context/Cargo.toml
says '"name":"quipu-cli"' "it has the command"

# --- settings

exits 0 "quipu.toml has no mistake" "$quipu" config check --config "$packaging/quipu.toml"
says ' no mistake$' "it says so"
# Nor would it have with the settings that it only shows.
sed -E 's/^# ([a-z_]+ = )/\1/' "$packaging/quipu.toml" >shown.toml
exits 0 "nor have the settings in its comments" "$quipu" config check --config shown.toml

# --- systemd

mkdir units
for unit in quipu.service quipu.socket; do
    sed "s#/usr/bin/quipu#$quipu#" "$packaging/systemd/$unit" >"units/$unit"
done
silent "systemd knows all that the units say" env MANPATH="$work/man" systemd-analyze verify \
    --man="$(command -v man >/dev/null && echo yes || echo no)" units/quipu.service units/quipu.socket
same "$(sed -n 's/^Type=//p' units/quipu.service)" notify "systemd waits until the server says that it answers"
# Of 10, where 10 is a service that may do everything; in tenths.
exits 0 "systemd finds the service exposed by no more than 1.5" systemd-analyze security \
    --offline=true --threshold=15 units/quipu.service
mkdir -p root/etc
exits 0 "the user of the service is made" systemd-sysusers --root="$work/root" "$packaging/systemd/quipu.sysusers"
same "$(cut -d : -f 1,6 root/etc/passwd)" "quipu:/var/lib/quipu" "it lives in the data folder"

# --- Kubernetes

for manifest in configmap service statefulset import-job readers/{bucket,configmap,deployment,autoscaler} \
    readers/{disruption-budget,service,secret,merge,prune}; do
    exits 0 "$manifest.yaml fits Kubernetes" "$python/kubernetes-validate" --strict \
        "$packaging/kubernetes/$manifest.yaml"
done
# What the writer becomes: lists of things that have names are merged by name, as `kubectl patch` does.
"$python/python" - "$packaging/kubernetes"/{statefulset,readers/writer-patch}.yaml >writer.yaml <<'PYTHON'
import sys, yaml
def patched(old, new):
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: patched(old.get(key), value) for key, value in new.items()}
    if isinstance(old, list) and all("name" in item for item in old + new):
        named = {item["name"]: item for item in old}
        return list((named | {item["name"]: patched(named.get(item["name"]), item) for item in new}).values())
    return new
print(yaml.dump(patched(*(yaml.safe_load(open(path)) for path in sys.argv[1:]))))
PYTHON
exits 0 "the StatefulSet of a writer fits Kubernetes" "$python/kubernetes-validate" --strict writer.yaml
for folder in "$packaging/kubernetes" "$packaging/kubernetes/readers"; do
    exits 0 "what $(basename "$folder") applies is there" "$python/python" - "$folder" <<'PYTHON'
import os, sys, yaml
folder = sys.argv[1]
applied = yaml.safe_load(open(f"{folder}/kustomization.yaml"))["resources"]
print(applied)
assert applied and all(os.path.isfile(f"{folder}/{name}") for name in applied)
PYTHON
done
exits 0 "no manifest has a secret, and every name that one refers to is that of another" "$python/python" - \
    "$packaging/kubernetes/readers"/*.yaml writer.yaml <<'PYTHON'
import sys, yaml
found, wanted = set(), set()
def refers(value):
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        kind = {"secretRef": "Secret", "configMapKeyRef": "ConfigMap", "configMap": "ConfigMap"}.get(key)
        if kind and item["name"] != "quipu":
            wanted.add((kind, item["name"], item.get("key")))
        if key == "scaleTargetRef":
            wanted.add((item["kind"], item["name"], None))
        if isinstance(item, (dict, list)):
            refers(item)
for path in sys.argv[1:]:
    for manifest in yaml.safe_load_all(open(path)):
        name, data = manifest.get("metadata", {}).get("name"), manifest.get("data", {})
        found |= {(manifest["kind"], name, key) for key in [None, *data]}
        assert manifest["kind"] != "Secret" or not any(manifest["stringData"].values()), path
        refers(manifest)
print(sorted(wanted - found, key=str))
assert wanted and wanted <= found
PYTHON
for pods in "configmap statefulset" "readers/configmap readers/deployment"; do
    read -r settings workload <<<"$pods"
    "$python/python" - "$packaging/kubernetes/$settings.yaml" >pod.toml <<'PYTHON'
import sys, yaml
print(yaml.safe_load(open(sys.argv[1]))["data"]["quipu.toml"])
PYTHON
    exits 0 "the settings of $settings.yaml have no mistake" "$quipu" config check --config pod.toml
    # Clients' port refuses probes with TLS, and when all connections are taken.
    exits 0 "probes of $workload.yaml ask where metrics are" "$python/python" - \
        pod.toml "$packaging/kubernetes/$workload.yaml" <<'PYTHON'
import sys, tomllib, yaml
listen = tomllib.load(open(sys.argv[1], "rb")).get("metrics", {}).get("metrics_listen")
container = yaml.safe_load(open(sys.argv[2]))["spec"]["template"]["spec"]["containers"][0]
names = {port["name"]: port["containerPort"] for port in container["ports"]}
ports = [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
print(listen, ports)
assert all(listen in (f"0.0.0.0:{names.get(port, port)}", f"[::]:{names.get(port, port)}") for port in ports)
PYTHON
done

# --- releases

release=$packaging/release
version=$("$release/version")

silent "actionlint has nothing to say of the workflows" "$tools/bin/actionlint" \
    -shellcheck "$python/shellcheck" "$root"/.github/workflows/*.yml
silent "shellcheck has nothing to say of the scripts of a release" "$python/shellcheck" \
    "$release"/{archive,deb,formula,image,notes,sbom,smoke,version} "$release"/debian/p*
same "$(grep -hoE '(toolchain install |rust:)[0-9.]+' "$root/.github/workflows/release.yml" "$packaging/Dockerfile" |
    grep -oE '[0-9.]+' | sort -u)" "$(sed -nE 's/^rust-version = "(.*)"$/\1/p' "$root/Cargo.toml")" \
    "a release is built with the workspace's Rust"
exits 0 "the changelog has a section" "$release/notes" Unreleased
refuses "a version without one is no release" "$release/notes" 0.0.0

# Debug tables are most of a binary of the tests.
mkdir stripped
strip -o stripped/quipu "$quipu"
host=$(rustc --version --verbose | sed -n 's/^host: //p')
exits 0 "the binary is packed" "$release/archive" "$host" stripped/quipu packages
archive=packages/quipu-$version-$host.tar.gz
# A binary that takes no time to compress.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$quipu" >short
chmod +x short
exits 0 "a second archive is packed" "$release/archive" "$host" "$work/short" once
exits 0 "and packed again" "$release/archive" "$host" "$work/short" again
exits 0 "equal files give equal bytes" diff -r once again

exits 0 "a Debian package is made of the archive" env DPKG_DEB_COMPRESSOR_TYPE=none \
    "$release/deb" "$archive" packages https://git.example/quipu maintainers@git.example
deb=$(echo packages/*.deb)
exits 0 "it names what the binary needs" dpkg-deb --field "$deb" Depends
says '^libc6 \(>= ' "the C library among them"
mkdir -p installed/etc installed/var/lib/dpkg/{info,updates}
touch installed/var/lib/dpkg/status
# runs_dpkg ARGUMENT...: in a folder of its own, with owners that only this file knows.
runs_dpkg() {
    touch owners
    fakeroot -i owners -s owners dpkg --root="$work/installed" --log=/dev/null --force-script-chrootless \
        --force-depends "$@"
}
exits 0 "dpkg installs it" runs_dpkg --install "$deb"
exits 0 "the binary that it installs is a release's" "$release/smoke" installed/usr/bin/quipu
read -r program settings < <(sed -nE 's/^ExecStart=(\S+) .*--config (\S+)$/\1 \2/p' \
    installed/usr/lib/systemd/system/quipu.service)
same "$(ls "installed$program" "installed$settings" installed/usr/lib/systemd/system/quipu.socket 2>&1)" \
    "$(printf '%s\n' "installed$settings" "installed$program" installed/usr/lib/systemd/system/quipu.socket)" \
    "the unit finds its program and settings"
user=$(awk -F : '$1 == "quipu" { print $3, $4 }' installed/etc/passwd)
state=installed/var/lib/$(sed -n 's/^StateDirectory=//p' "$packaging/systemd/quipu.service")
mode=$(sed -n 's/^StateDirectoryMode=0//p' "$packaging/systemd/quipu.service")
same "$(fakeroot -i owners stat --format='%a %u %g' "$state")" "$mode $user" \
    "the data folder is what the unit expects"
same "$(fakeroot -i owners stat --format='%a %u %g' "installed$settings")" "640 0 ${user#* }" \
    "the service may read its settings, and others may not"
cp -r installed/usr/share/man/man1 unpacked
gzip --decompress unpacked/*
exits 0 "man finds every page" diff -r unpacked man/man1
exits 0 "bash finds its completions" cmp installed/usr/share/bash-completion/completions/quipu completions.bash
exits 0 "zsh finds its completions" cmp installed/usr/share/zsh/vendor-completions/_quipu completions.zsh
exits 0 "fish finds its completions" test -s installed/usr/share/fish/vendor_completions.d/quipu.fish
exits 0 "dpkg removes it" runs_dpkg --purge quipu
same "$(find installed -path '*quipu*')" "$state" "nothing but the data folder stays"

targets=({aarch64,x86_64}-{apple-darwin,unknown-linux-gnu})
for target in "${targets[@]}"; do
    echo "$(sha256sum <<<"$target" | cut -d ' ' -f 1)  quipu-$version-$target.tar.gz"
    grep --quiet "target: $target$" "$root/.github/workflows/release.yml" || not_ok "no release is built for $target"
done >sums
exits 0 "a formula is made of the sums" "$release/formula" sums https://git.example/quipu
cp "$output" quipu.rb
# Each address with its sum, in the order of the targets' names.
same "$(sed -nE 's#^ *url ".*/v[^/]*/(.*)"$#\1#p; s/^ *sha256 "(.*)"$/\1/p' quipu.rb | paste - - | sort)" \
    "$(awk '{ print $2 "\t" $1 }' sums | sort)" "each of its archives has its sum"
! command -v ruby >/dev/null || exits 0 "ruby reads it" ruby -c quipu.rb
head -n 3 sums >fewer
refuses "a sum that is missing stops the release" "$release/formula" fewer https://git.example/quipu

exits 0 "cargo binstall would find the archive, and the binary in it" "$python/python" - \
    "$root/crates/cli/Cargo.toml" "$archive" "$version" "$host" <<'PYTHON'
import os, sys, tarfile, tomllib
manifest, archive, version, target = sys.argv[1:]
found = tomllib.load(open(manifest, "rb"))["package"]["metadata"]["binstall"]
def filled(template):
    for name, value in {"version": version, "target": target, "bin": "quipu", "archive-suffix": ".tar.gz"}.items():
        template = template.replace("{ " + name + " }", value)
    return template
print(filled(found["pkg-url"]), filled(found["bin-dir"]))
assert filled(found["pkg-url"]) == "{ repo }/releases/download/v" + version + "/" + os.path.basename(archive)
assert found["pkg-fmt"] == "tgz"
assert filled(found["bin-dir"]) in tarfile.open(archive).getnames()
PYTHON

# --- variables

# Those of containers, as shells read them; a bucket stands where a value is somebody's own.
"$python/python" - "$packaging/compose-readers.yaml" "$packaging/kubernetes/readers"/{deployment,merge,prune}.yaml \
    writer.yaml >variables.sh <<'PYTHON'
import shlex, sys, yaml
def containers(value):
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key in ("containers", "services"):
            yield from item.values() if isinstance(item, dict) else item
        elif isinstance(item, (dict, list)):
            yield from containers(item)
for path in sys.argv[1:]:
    for container in containers(yaml.safe_load(open(path))):
        given = container.get("environment") or {it["name"]: it.get("value") for it in container.get("env", [])}
        for name, value in given.items():
            if name.startswith("QUIPU_") and name not in ("QUIPU_CONFIG", "QUIPU_DATA_DIR"):
                if value is None or value.startswith("${"):
                    value = value.rpartition(":-")[2].rstrip("}") if ":-" in (value or "") else \
                        {"QUIPU_UPSTREAM": "ws://127.0.0.1:8546"}.get(name, "s3://quipu/mainnet")
                print(f"export {name}={shlex.quote(value)}")
PYTHON
cat variables.sh
# shellcheck disable=SC2016 # the inner shell expands it
exits 0 "the variables of writers and readers have no mistake" \
    bash -c 'source ./variables.sh && "$1" config check --config "$2"' - "$quipu" "$packaging/quipu.toml"
same "$(grep -ciE 'warn|no setting' "$output")" 0 "all of them are settings"

# --- behind proxies

exits 0 "a chain is made" "$quipu" sample --to archives --block-count 300 --txs-per-block 2
exits 0 "it is imported" "$quipu" import --data-dir data --genesis archives/genesis.json archives
quipu_port=$(free_port)

starts_quipu() {
    : >quipu.log
    "$quipu" serve --data-dir data --listen "127.0.0.1:$quipu_port" >quipu.log 2>&1 &
    server=$!
    for _ in {1..200}; do
        ! grep --quiet '^listening on ' quipu.log || return 0
        sleep 0.05
    done
    cat quipu.log >&2
    return 1
}

# asks CODE WHAT ARGUMENT...: curl gets this code from $site.
asks() {
    local code=$1 what=$2
    shift 2
    rm -f answer
    same "$(curl --silent --insecure --max-time 20 --output answer --write-out '%{http_code}' "$@")" \
        "$code" "$what"
}

call='{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'

# serves NAME SITE SOCKET: a proxy answers what Quipu does, over HTTP and WebSocket.
serves() {
    local name=$1 site=$2 socket=$3
    asks 200 "$name: a call is answered" "$site" --header 'content-type: application/json' --data "$call"
    same "$(json 'value["result"]' <answer)" 0x12b "$name: with the tip"
    asks 200 "$name: a long answer comes whole" "$site" --compressed --data \
        '{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x12b"}]}'
    same "$(json 'len(value["result"]) > 100' <answer)" True "$name: with its logs"
    asks 200 "$name: /healthz is passed on" "$site/healthz"
    # Quipu itself answers these, as was seen above; what proxies decode, it takes for a part of the key.
    for page in metrics readyz stat.json; do
        for path in "/$page" "/$page?x=1" "/v1/x/$page" "/v1/a%2Fb/$page" "/v1/a%2F../$page" "/v1/../$page"; do
            asks 404 "$name: $path is not" --path-as-is "$site$path"
            same "$(grep -cE 'quipu_|ready|tip' answer)" 0 "$name: nor is anything told"
        done
    done
    asks 200 "$name: a key in the path is passed on" "$site/v1/qk_secret" --data "$call"
    # Exactly as large a body as Quipu takes.
    printf '%s%*s' "$call" $((5 * 1024 * 1024 - ${#call})) "" >large
    asks 200 "$name: a body of 5,242,880 bytes is passed on" "$site" --data-binary @large
    same "$(json 'value["result"]' <answer)" 0x12b "$name: and answered"
    printf ' ' >>large
    local code
    code=$(curl --silent --insecure --max-time 20 --output answer --write-out '%{http_code}' "$site" --data-binary @large)
    # Quipu refuses by the length. A Caddy that has read too much by then calls its own refusal a bad gateway.
    [ "$name" != Caddy ] || code=${code/502/413}
    same "$code" 413 "$name: one byte more is refused"
    exits 0 "$name: a WebSocket is answered, and subscribes" "$python/python" - "$socket" <<'PYTHON'
import asyncio, json, ssl, sys, websockets
async def ask():
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    secure = {"ssl": trust} if sys.argv[1].startswith("wss") else {}
    async with websockets.connect(sys.argv[1], **secure) as socket:
        for method, params in (("eth_blockNumber", []), ("eth_subscribe", ["newHeads"])):
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
            print(method, json.loads(await socket.recv())["result"])
asyncio.run(asyncio.wait_for(ask(), 20))
PYTHON
    says '^eth_blockNumber 0x12b$' "$name: with the tip"
    says '^eth_subscribe 0x' "$name: with a subscription"
}

starts_quipu
for path in /metrics /v1/x/metrics /v1/a%2Fb/metrics; do
    asks 200 "Quipu shows metrics where clients ask, at $path" "http://127.0.0.1:$quipu_port$path"
    same "$(grep -c '^quipu_build_info' answer)" 1 "and they are Quipu's"
done

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=rpc.example \
    -keyout key.pem -out certificate.pem 2>"$output"
configures ""
sed "s#listen 443#listen 127.0.0.1:$port#; /listen \[::\]/d; s#server 127.0.0.1:8545;#server 127.0.0.1:$quipu_port;#
    s#/etc/letsencrypt/live/rpc.example/fullchain.pem#$work/certificate.pem#
    s#/etc/letsencrypt/live/rpc.example/privkey.pem#$work/key.pem#
    s#/var/log/nginx/#$work/nginx/#" "$packaging/nginx/quipu.conf" >nginx/site.conf
# The settings of a process around it, and this site in place of the mirror.
sed -i "/^    server {/,/^    }/c\\    include $work/nginx/site.conf;" nginx/nginx.conf
# What the site's own comment says to do with newer versions.
version=$(nginx -v 2>&1 | sed -E 's#.*/([0-9.]+).*#\1#')
if [ "$(printf '%s\n' 1.25.1 "$version" | sort --version-sort | head -n 1)" = 1.25.1 ]; then
    sed -i -E 's#^( *)(listen .*) http2;#\1\2;\n\1http2 on;#' nginx/site.conf
fi
exits 0 "nginx knows all that the site says" nginx -t -p "$work/nginx" -c "$work/nginx/nginx.conf" -e "$work/nginx/error.log"
says 'test is successful' "it says so"
same "$(grep -c '\[warn\]' "$output")" 0 "without a warning"
starts_nginx
serves nginx "https://127.0.0.1:$port" "wss://127.0.0.1:$port"
asks 200 "nginx: HTTP/2 is answered" --http2 "https://127.0.0.1:$port" --data "$call"
same "$(grep -c '"POST /v1/KEY HTTP' nginx/quipu.access.log)" 1 "nginx: the access log has the call"
same "$(cat nginx/*.log | grep -c qk_secret)" 0 "nginx: and no key"
# With one request a minute, the second of two is over the limit.
kill "$nginx"
wait "$nginx" || true
cp nginx/site.conf nginx/unlimited.conf
sed -i 's#rate=100r/s#rate=1r/m#; s/ burst=200 nodelay//' nginx/site.conf
starts_nginx
asks 200 "nginx: the first call of a minute is answered" "https://127.0.0.1:$port/v1/qk_secret" --data "$call"
asks 429 "nginx: the next one is refused" "https://127.0.0.1:$port/v1/qk_secret" --dump-header head --data "$call"
same "$(json 'value["error"]["code"]' <answer)" -32005 "nginx: with Quipu's error"
same "$(grep -ciE '^(retry-after: 1|content-type: application/json).?$' head)" 2 "nginx: and when to come again"
same "$(cat nginx/*.log | grep -c qk_secret)" 0 "nginx: and no key in a log"
kill "$nginx"
wait "$nginx" || true
mv nginx/unlimited.conf nginx/site.conf
starts_nginx

# With a second server: the first closes connections after a request, and later is not there.
first_port=$(free_port)
kill "$nginx"
wait "$nginx" || true
cp nginx/site.conf nginx/one.conf
sed -i "s#server 127.0.0.1:$quipu_port;#server 127.0.0.1:$first_port max_fails=0;#
    s/# server 127.0.0.1:8546 backup;/server 127.0.0.1:$quipu_port backup;/" nginx/site.conf
python3 - "$first_port" >closer.log 2>&1 <<'PYTHON' &
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = server.accept()
    connection.recv(65536)
    connection.close()
PYTHON
closer=$!
for _ in {1..200}; do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$first_port") 2>/dev/null || break
    sleep 0.05
done
starts_nginx
asks 502 "nginx: a call that was sent is not sent to the second server" "https://127.0.0.1:$port" --data "$call"
kill "$closer"
wait "$closer" || true
asks 200 "nginx: a call that could not be sent is" "https://127.0.0.1:$port" --data "$call"
kill "$nginx"
wait "$nginx" || true
mv nginx/one.conf nginx/site.conf
starts_nginx

"$caddy" version >"$output" 2>&1 || true
echo "caddy $(head -n 1 "$output")"
exits 0 "Caddy knows all that the site says" "$caddy" validate --adapter caddyfile --config "$packaging/caddy/Caddyfile"
caddy_port=$(free_port)
{
    printf '{\n\tadmin off\n}\n'
    sed "s#^rpc.example {#http://127.0.0.1:$caddy_port {#; s#127.0.0.1:8545#127.0.0.1:$quipu_port#" \
        "$packaging/caddy/Caddyfile"
} >Caddyfile
XDG_DATA_HOME=$work/caddy XDG_CONFIG_HOME=$work/caddy "$caddy" run --adapter caddyfile --config Caddyfile >caddy.log 2>&1 &
for _ in {1..200}; do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$caddy_port") 2>/dev/null || break
    sleep 0.05
done
(exec 3<>"/dev/tcp/127.0.0.1/$caddy_port") 2>/dev/null || cat caddy.log >&2
serves Caddy "http://127.0.0.1:$caddy_port" "ws://127.0.0.1:$caddy_port"
same "$(grep -c '"uri":"/v1/KEY"' caddy.log)" 1 "Caddy: the access log has the call"
same "$(grep -c qk_secret caddy.log)" 0 "Caddy: and no key"

# A restart: Caddy lets GET wait. Calls would wait too in versions that have caddyserver/caddy#7547.
kill "$server"
wait "$server" || true
asks 502 "nginx tells that nobody answers" "https://127.0.0.1:$port" --data "$call"
curl --silent --max-time 20 --output waited --write-out '%{http_code}' \
    "http://127.0.0.1:$caddy_port/healthz" >waited.code &
waiting=$!
sleep 1
starts_quipu
wait "$waiting" || true
same "$(cat waited.code)" 200 "Caddy holds a GET until the server is back"
asks 200 "Caddy answers calls again" "http://127.0.0.1:$caddy_port" --data "$call"
asks 200 "nginx answers again" "https://127.0.0.1:$port" --data "$call"
