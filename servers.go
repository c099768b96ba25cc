package pawl

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Whether a client talks to one server or to several is asked of what it can do,
// not of its type, so that a type of the user's own may embed it.

// oneServer is a redis.Client. Of any other the keys of two queues may lie on two
// servers, which no command may have in common.
type oneServer interface{ Options() *redis.Options }

// cluster is a redis.ClusterClient.
type cluster interface {
	ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	MasterForKey(context.Context, string) (*redis.Client, error)
	ReloadState(context.Context)
}

// checkServers refuses a redis.Ring: it looks for the keys of a server that is down
// on the others, and a job that was enqueued there is out of sight, for good, as soon
// as the server is back.
func checkServers(rdb redis.UniversalClient) error {
	if _, ring := rdb.(interface {
		GetShardClientForKey(string) (*redis.Client, error)
	}); ring {
		return invalidf("a redis.Ring loses sight of jobs when one of its servers fails: give a ClusterClient, or make a Client of each server")
	}
	return nil
}
