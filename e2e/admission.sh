#!/usr/bin/env bash
# Who may ask: keys and tokens with curl, viem (HTTP and WebSocket) and web3.py, unmodified, and rates under
# load. Tokens are made by Node's own cryptography, keys of theirs by openssl.

# shellcheck source=e2e/keyed.sh
source "$(dirname "${BASH_SOURCE[0]}")/keyed.sh"
imports_sample

new_key app
app=$api_key
new_key slow 'rate = 5'
slow=$api_key
new_key loaded 'rate = 200'
loaded=$api_key
new_key reader 'methods = ["eth_getBlock*"]'
reader=$api_key
exits 0 "quipu config check takes the keys" "$quipu" config check --config "$settings"
says '4 API keys, no mistake' "it counts them"

openssl genpkey -algorithm ed25519 -out "$work/private.pem" 2>"$work/openssl.log"
openssl pkey -in "$work/private.pem" -pubout -out "$work/public.pem"
openssl rand -hex 32 >"$work/secret"

starts serve '^listening on (http:.*)$' env RUST_LOG=debug "$quipu" serve --config "$settings" \
    --data-dir "$work/data" --listen 127.0.0.1:0 \
    --jwt-secret-file "$work/secret" --jwt-public-key-file "$work/public.pem"
url=$address

asks 401 "curl without a key" "$url"
says '"message":"unauthorized: an API key is needed' "it is told what is needed"
asks 200 "curl with a bearer" --header "Authorization: Bearer $app" "$url"
asks 200 "curl with X-Api-Key" --header "X-Api-Key: $app" "$url"
asks 200 "curl with a path" "$url/v1/$app"
asks 200 "curl over HTTP/2" --http2-prior-knowledge "$url/v1/$app"
asks 401 "curl over HTTP/2 without a key" --http2-prior-knowledge "$url"
status 200 "curl as it sends a form" "$url/v1/$app" --data "$call"
asks 403 "curl with a key for other methods" "$url/v1/$reader"
says '"code":-32604' "it is told so"
status 200 "a page that supervisors read" "$url/healthz"
status 401 "a page without a key" "$url/stat.json"
status 200 "a page with one" "$url/v1/$app/stat.json"

hmac=$(node token.mjs "$work/secret" 600 '{"sub":"hmac"}')
ed25519=$(node token.mjs "$work/private.pem" 600 '{"sub":"ed25519"}')
ended=$(node token.mjs "$work/private.pem" -120 '{"sub":"ed25519"}')
asks 200 "a token of HS256" --header "Authorization: Bearer $hmac" "$url"
asks 200 "a token of EdDSA" --header "Authorization: Bearer $ed25519" "$url"
asks 401 "a token that has ended" --header "Authorization: Bearer $ended" "$url"
says '"message":"unauthorized: the token has expired"' "it is told so"

for secret in "$app" "$hmac" "$ed25519"; do
    exits 0 "viem with ${secret:0:5}..." node keyed_viem.mjs "$url" "$secret" "$slow"
    exits 0 "web3.py with ${secret:0:5}..." "$python" keyed_web3.py "$url" "$secret"
done

exits 0 "a rate holds under load, and nobody else is held up" \
    node rates.mjs "$url" "$loaded" 200 "$app" 5
ok "$(tail -n 1 "$output")"

refuses "no log line shows a key" grep --quiet --fixed-strings -e "${app#qk_}" -e "${slow#qk_}" \
    -e "${loaded#qk_}" -e "${reader#qk_}" -e "${hmac##*.}" -e "${ed25519##*.}" "$work/serve.log"
exits 0 "and there are log lines" grep --quiet 'answered' "$work/serve.log"
