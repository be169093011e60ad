# shellcheck shell=bash
# A server that lets in who has a key; sourced, not run.
#
# Gives: what check.sh does, the clients with $work/clients entered, $python, $settings for keys to be added
# to, $authority, $certificate and $private_key where they are made, and the functions below.

# shellcheck source=e2e/check.sh
source "$(dirname "${BASH_SOURCE[0]}")/check.sh"

# shellcheck disable=SC2034 # the scripts that source this one use it
python=$target/e2e/clients/python/bin/python
call='{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
settings=$work/quipu.toml
authority=$work/authority.pem
certificate=$work/certificate.pem
private_key=$work/private-key.pem
new_ec_key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

exits 0 "the clients are installed" "$root/e2e/install" clients "$target/e2e"
enters clients

# new_key NAME LINE...: a key, with these lines in its table; $api_key is the key.
new_key() {
    local name=$1
    shift
    "$quipu" key new --name "$name" >"$work/$name.key"
    api_key=$(head -n 1 "$work/$name.key")
    {
        tail -n +3 "$work/$name.key"
        printf '%s\n' "$@"
    } >>"$settings"
}

# founds_authority: of certificates.
founds_authority() {
    openssl req -x509 "${new_ec_key[@]}" -keyout "$work/authority-key.pem" -out "$authority" -days 2 \
        -subj "/CN=an authority" 2>"$work/openssl.log"
}

# issues_certificate SERIAL: a certificate of the authority, in place of the one before.
issues_certificate() {
    openssl req "${new_ec_key[@]}" -keyout "$private_key.new" -out "$work/request.pem" \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>"$work/openssl.log"
    openssl x509 -req -in "$work/request.pem" -CA "$authority" -CAkey "$work/authority-key.pem" \
        -set_serial "$1" -days 2 -copy_extensions copyall -out "$certificate.new" 2>"$work/openssl.log"
    mv "$private_key.new" "$private_key"
    mv "$certificate.new" "$certificate"
}

# imports_sample: $work/data has 50 blocks.
imports_sample() {
    exits 0 "quipu sample writes a chain" "$quipu" sample --to "$work/chain" --block-count 50
    exits 0 "quipu import takes it" "$quipu" import --data-dir "$work/data" \
        --genesis "$work/chain/genesis.json" "$work/chain"
}

# status EXPECTED WHAT ARGUMENT...: curl with these arguments gets this status.
status() {
    local expected=$1 what=$2
    shift 2
    same "$(curl --silent --output "$output" --write-out '%{http_code}' "$@")" "$expected" "$what"
}

# asks EXPECTED WHAT ARGUMENT...: the same of a call.
asks() {
    status "$@" --header 'content-type: application/json' --data "$call"
}
