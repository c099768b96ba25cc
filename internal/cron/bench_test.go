package cron_test

import (
	"testing"
	"time"

	"github.com/pawlq/pawl/internal/cron"
)

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cron.Parse("*/15 2,4 1-15 * mon-fri"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, line := range []string{"30 2 * * *", "*/30 * * * *", "0 0 29 2 *", "0 * 29 2 *"} {
		b.Run(line, func(b *testing.B) {
			l, err := cron.Parse(line)
			if err != nil {
				b.Fatal(err)
			}
			z, at := zone(b, "Europe/Berlin"), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Next(at, z); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
