"""Statistics for other programs: OpenMetrics, JSON, statistics pages."""
