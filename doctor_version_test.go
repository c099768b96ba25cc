package pawl_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// posing has INFO tell other fields than the server's own version.
type posing struct{ fields string }

func (posing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (posing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p posing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	own := regexp.MustCompile(`(?m)^redis_version:.*\r$`)
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if info, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			info.SetVal(own.ReplaceAllString(info.Val(), p.fields+"\r"))
		}
		return err
	}
}

func TestDoctorFindsAServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	s := sound(t)
	for _, c := range []struct {
		fields string
		judge  func(*testing.T, pawl.Finding, ...string)
		says   string
	}{
		{"redis_version:6.0.16", requireBad, "Redis 6.0.16, which lacks"},
		{"redis_version:5.0.7", requireBad, "run Redis 6.2 or newer"},
		{"redis_version:6.2.0", requireOK, "Redis 6.2.0"},
		{"redis_version:10.0.0", requireOK, "Redis 10.0.0"},
		{"redis_version:7.2.4\r\nvalkey_version:8.0.1", requireOK, "Valkey 8.0.1"},
		{"redis_version:7.2.4\r\nvalkey_version:7.0.0", requireBad, "Valkey 7.0.0"},
		{"redis_version:next", requireUnknown, "needs Redis 6.2"},
		{"other:1", requireUnknown, "does not tell its version"},
	} {
		rdb := s.Client(t)
		rdb.AddHook(posing{c.fields})
		c.judge(t, findings(t, rdb)["version"], c.says)
	}
}
