//! Samples of metrics, and the text that Prometheus reads.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric as Sample, MetricFamily, MetricType,
};
use prometheus::{Encoder as _, TextEncoder};

use super::super::live_stat::float;
use super::table::{METRICS, Metric, MetricKind};

/// A label of a sample.
pub(super) type Label<'a> = (&'static str, &'a str);

/// Samples by metric.
#[derive(Debug)]
pub(super) struct Exposition {
    samples: Vec<Vec<Sample>>,
}

impl Exposition {
    pub(super) fn new() -> Self {
        Self { samples: vec![Vec::new(); METRICS.len()] }
    }

    /// Adds a sample of a counter.
    pub(super) fn count(&mut self, metric: Metric, labels: &[Label<'_>], count: u64) {
        self.count_parts(metric, labels, float(count));
    }

    /// Adds a sample of a counter that counts parts too.
    pub(super) fn count_parts(&mut self, metric: Metric, labels: &[Label<'_>], value: f64) {
        let mut counter = Counter::default();
        counter.set_value(value);
        let mut sample = Sample::from_label(pairs(labels));
        sample.set_counter(counter);
        self.add(metric, MetricKind::Counter, labels, sample);
    }

    /// Adds a sample of a gauge.
    pub(super) fn gauge(&mut self, metric: Metric, labels: &[Label<'_>], value: u64) {
        self.gauge_parts(metric, labels, float(value));
    }

    /// Adds a sample of a gauge that is no whole number.
    pub(super) fn gauge_parts(&mut self, metric: Metric, labels: &[Label<'_>], value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut sample = Sample::from_label(pairs(labels));
        sample.set_gauge(gauge);
        self.add(metric, MetricKind::Gauge, labels, sample);
    }

    /// Adds a sample of a histogram: how many there are up to each bound, how many in all, and their sum.
    pub(super) fn histogram(
        &mut self,
        metric: Metric,
        labels: &[Label<'_>],
        up_to: impl Iterator<Item = (f64, u64)>,
        (count, sum): (u64, f64),
    ) {
        let bucket = |(bound, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            bucket
        };
        let mut histogram = Histogram::default();
        histogram.set_bucket(up_to.map(bucket).collect());
        histogram.set_sample_count(count);
        histogram.set_sample_sum(sum);
        let mut sample = Sample::from_label(pairs(labels));
        sample.set_histogram(histogram);
        self.add(metric, MetricKind::Histogram, labels, sample);
    }

    fn add(&mut self, metric: Metric, kind: MetricKind, labels: &[Label<'_>], sample: Sample) {
        let Some((_, row)) = METRICS.get(metric.index()) else { return };
        debug_assert_eq!(row.kind, kind, "{}", row.name);
        debug_assert!(row.labels.iter().eq(labels.iter().map(|(name, _)| name)), "{}", row.name);
        if let Some(samples) = self.samples.get_mut(metric.index()) {
            samples.push(sample);
        }
    }

    /// The text. Metrics without a sample are not in it.
    pub(super) fn encode(self) -> Vec<u8> {
        let families: Vec<MetricFamily> = METRICS
            .iter()
            .zip(self.samples)
            .filter(|(_, samples)| !samples.is_empty())
            .map(|((_, row), samples)| {
                let mut family = MetricFamily::default();
                family.set_name(row.name.to_owned());
                family.set_help(row.help.to_owned());
                family.set_field_type(match row.kind {
                    MetricKind::Counter => MetricType::COUNTER,
                    MetricKind::Gauge => MetricType::GAUGE,
                    MetricKind::Histogram => MetricType::HISTOGRAM,
                });
                family.set_metric(samples);
                family
            })
            .collect();
        let mut out = Vec::new();
        // Memory takes whatever is written to it, and every family has a name and a sample.
        let written = TextEncoder::new().encode(&families, &mut out);
        debug_assert!(written.is_ok(), "{written:?}");
        out
    }
}

fn pairs(labels: &[Label<'_>]) -> Vec<LabelPair> {
    let pair = |(name, value): &Label<'_>| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    labels.iter().map(pair).collect()
}
