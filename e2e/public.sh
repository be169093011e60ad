#!/usr/bin/env bash
# A server as it stands on the internet, with settings, keys and a certificate in files: curl, viem and
# web3.py over TLS; a rate under load; settings that are read again under load, and a stop under load, with
# every request counted.

# shellcheck source=e2e/keyed.sh
source "$(dirname "${BASH_SOURCE[0]}")/keyed.sh"
imports_sample

# serial: of the certificate that the server shows.
serial() {
    openssl s_client -connect "${address#https://}" </dev/null 2>/dev/null | openssl x509 -noout -serial
}

founds_authority
issues_certificate 1
cat >"$settings" <<END
data_dir = "$work/data"
[server]
listen = "127.0.0.1:0"
[tls]
tls_cert = "$certificate"
tls_key = "$private_key"
[limits]
batch_items_max = 100
END
new_key app
app=$api_key
new_key slow 'rate = 5'
slow=$api_key
new_key loaded 'rate = 200'
loaded=$api_key
new_key reader 'methods = ["eth_getBlock*"]'
reader=$api_key

exits 0 "quipu config check takes the file" "$quipu" config check --config "$settings"
says '4 API keys, no mistake' "it counts the keys"
starts serve '^listening on (https:.*)$' env RUST_LOG=info,rpc=debug \
    "$quipu" serve --config "$settings" --log-format json
asks 000 "curl that does not know the authority" "$address/v1/$app"
asks 200 "curl with the authority and a key" --cacert "$authority" "$address/v1/$app"
asks 401 "curl with the authority and no key" --cacert "$authority" "$address"
says '"message":"unauthorized: an API key is needed' "it is told what is needed"
asks 200 "curl with a bearer" --cacert "$authority" --header "Authorization: Bearer $app" "$address"
asks 403 "curl with a key for other methods" --cacert "$authority" "$address/v1/$reader"
says '"code":-32604' "it is told so"
for version in 1.1 2; do
    same "$(curl --silent --cacert "$authority" "--http$version" --output "$output" \
        --write-out '%{http_version} %{http_code}' --header "X-Api-Key: $app" --data "$call" "$address")" \
        "$version 200" "curl over HTTP/$version, chosen in the handshake"
done
exits 0 "viem over https and wss" env NODE_EXTRA_CA_CERTS="$authority" \
    node keyed_viem.mjs "$address" "$app" "$slow"
exits 0 "web3.py over https" env REQUESTS_CA_BUNDLE="$authority" \
    "$python" keyed_web3.py "$address" "$app"

exits 0 "a rate holds under load, and another caller is not held up" \
    env NODE_EXTRA_CA_CERTS="$authority" node rates.mjs "$address" "$loaded" 200 "$app" 5
ok "$(tail -n 1 "$output")"

# loads: every kind of caller at once, in the background, for ten minutes at most.
loads() {
    node under_load.mjs "$address" "$app" "$authority" 600 50 "$work/answered" >"$work/load" 2>&1 &
    load=$!
}

# logged MESSAGE: how many lines of the log have this message.
logged() {
    grep --count --fixed-strings "\"message\":\"$1\"" "$work/serve.log" || true
}

# --- settings and a certificate that are read again, under load

reloads=20
loads
for ((round = 1; round <= reloads; round++)); do
    issues_certificate $((round + 1))
    new_key "app$round"
    sed --in-place "s/^batch_items_max = .*/batch_items_max = $((100 + round))/" "$settings"
    kill -HUP "$process"
    for _ in {1..600}; do
        [ "$(logged 'settings were read again')" -lt "$round" ] || break
        sleep 0.05
    done
    asks 200 "reload $round: the new key is let in" --cacert "$authority" "$address/v1/$api_key"
    same "$(serial)" "$(printf 'serial=%02X' $((round + 1)))" "reload $round: the new certificate is shown"
done
# One that has ended already is judged by its end.
kill "$load" 2>/dev/null || true
if wait "$load"; then
    ok "$reloads reloads under load: $(tail -n 1 "$work/load")"
else
    not_ok "$reloads reloads under load: $(cat "$work/load")"
fi

# --- a stop under load

# How a caller may find out: nobody listens, the connection is closed before a request is read, or the
# server says so.
gone='ECONNREFUSED|ECONNRESET|socket hang up|closed with 1001|GOAWAY|ERR_HTTP2|Client network socket disconnected'
before=$(logged answered)
loads
for _ in {1..600}; do
    [ "$(logged answered)" -lt $((before + 5000)) ] || break
    sleep 0.05
done
kill "$process"
if wait "$process"; then ok "a stop under load ends well"; else not_ok "a stop under load ends with $?"; fi
wait "$load" || true
same "$(grep --count '^broken off' "$work/load")" 12 "every caller was told, or found nobody"
same "$(grep '^broken off' "$work/load" | grep --invert-match --extended-regexp "$gone" || true)" "" \
    "none of them was left in the middle of an answer"
exits 0 "every request that was accepted is answered" \
    "$python" accepted.py "$work/serve.log" "$before" "$work/answered"
says '^[0-9]{4,} accepted, 0 lost' "$(tail -n 1 "$output")"

# Keys count as sent in a header, in the path, and refused for their rate. Log lines of every call are on.
refuses "no log line shows a key" grep --quiet --fixed-strings -e "${app#qk_}" -e "${slow#qk_}" \
    -e "${loaded#qk_}" -e "${reader#qk_}" "$work/serve.log"
