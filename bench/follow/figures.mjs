// Figures of a series.

// The value that so much of the series (0 to 1) does not exceed.
export function quantile(series, share) {
    const sorted = [...series].sort((one, other) => one - other);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export const median = (series) => quantile(series, 0.5);
