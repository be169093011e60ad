#!/usr/bin/env bash
# Debian's Prometheus scrapes a server that follows a node: its metrics are as promtool wants them, the
# alert rules are right and fire when they should, and every query of the dashboard returns data.

# shellcheck source=e2e/nodes.sh
source "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

packaging=$root/packaging
promtool=$target/e2e/debian/prometheus/usr/bin/promtool
prometheus=$target/e2e/debian/prometheus/usr/bin/prometheus

exits 0 "Prometheus is installed" "$root/e2e/install" debian-prometheus "$target/e2e"
exits 0 "the alert rules are well-formed" "$promtool" check rules "$packaging/prometheus/alerts.yml"
exits 0 "the alert rules fire when they should and only then" \
    "$promtool" test rules "$packaging/prometheus/alerts-test.yml"
exits 0 "the example of a configuration is well-formed" \
    "$promtool" check config "$packaging/prometheus/prometheus.yml"

# A server that follows a node, seals, and has seen reorgs.
starts_anvil
sends "$anvil"
follows metrics "$anvil_socket" "$anvil" --metrics-listen 127.0.0.1:0 \
    --pass-through 'eth_gasPrice,eth_call' --pass-through-to "$anvil"
ask "$anvil" anvil_mine 0x180 >/dev/null
catches_up "$anvil"
metrics=$(sed -nE 's,^metrics on http://(.*)/metrics$,\1,p' "$work/quipu-metrics.log")
holds_from_genesis "$anvil"
sends "$anvil"
ask "$anvil" anvil_reorg 3 '[]' >/dev/null
catches_up "$anvil"

# A reader of what the same folder published.
exits 0 "the folder is published" "$quipu" publish --data-dir "$work/metrics-data" \
    --to "file://$work/bucket"
starts reader '^listening on (http:.*)$' "$quipu" serve --source "file://$work/bucket" \
    --cache-dir "$work/cache" --listen 127.0.0.1:0
reader=$address

# asks: some of everything, so that no rate is of nothing.
asks() {
    ask "$reader" debug_getRawBlock 0x1 >/dev/null
    agrees "while Prometheus looks" "$anvil" "$(tip_of "$anvil")" "0x0 0x1 0x2 0x4" "${anvil_habits[@]}"
    ask "$ours" eth_newBlockFilter >/dev/null
    curl --silent --output "$output" "$ours/no-such-page"
}

asks
exits 0 "the metrics can be asked for" curl --silent --fail --output "$work/page" "http://$metrics/metrics"
check_metrics() {
    "$promtool" check metrics <"$1"
}
exits 0 "promtool finds nothing wrong with them" check_metrics "$work/page"
same "$(cat "$output")" "" "and says nothing"
sed 's/^# HELP quipu_ready .*//' "$work/page" >"$work/wrong"
refuses "promtool tells of a metric without help" check_metrics "$work/wrong"

# Scraped every second: rates over a few seconds have several points.
cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$packaging/prometheus/alerts.yml"]
scrape_configs:
  - {job_name: quipu, static_configs: [{targets: ["$metrics", "${reader#http://}"]}]}
END
starts prometheus '.*msg="Listening on" address=(.*)$' "$prometheus" \
    --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
    --web.listen-address=127.0.0.1:0

# Clients ask all the time, while the queries are tried until each has data.
# What they say goes to a file of its own: the tests beside them read theirs.
asks_on() {
    local output=$work/asked
    while true; do asks; done
}
asks_on >"$work/asking" 2>&1 &
exits 0 "every query of the dashboard returns data" \
    python3 "$root/e2e/nodes/dashboard.py" "http://$address" "$packaging/grafana/quipu.json"
says '^[0-9]{2,} queries, 0 without data' "$(tail -n 1 "$output")"
exits 0 "every alert rule is evaluated, and none fires" \
    python3 "$root/e2e/nodes/dashboard.py" "http://$address" --rules
