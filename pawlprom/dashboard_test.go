package pawlprom_test

import (
	"testing"
	"time"
)

func requirePanels(t *testing.T, p *prom, since time.Time) {
	t.Helper()
	if p.series(t, "pawl_redis_up", since) == 0 {
		t.Error("no")
	}
}
