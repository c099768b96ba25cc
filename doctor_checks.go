package pawl

import (
	"fmt"
	"strconv"
	"strings"
)

// checks are what is looked at in each server, in the order of the report.
var checks = []struct {
	name string
	look func(*node) Finding
}{
	{"version", (*node).version},
	{"role", (*node).role},
	{"cluster", (*node).cluster},
	{"maxmemory-policy", (*node).policy},
	{"maxmemory", (*node).memory},
	{"appendonly", (*node).appendOnly},
	{"appendfsync", (*node).appendSync},
	{"disk", (*node).disk},
	{"min-replicas", (*node).minReplicas},
}

// untold is the finding where the server does not tell.
func (n *node) untold(what string) Finding {
	switch {
	case n.lost != nil:
		return notKnown("the server did not answer: %v", n.lost)
	case n.infoNo != nil:
		return notKnown("INFO is refused (%v): ask the server for %s as another user, or let this one run INFO", n.infoNo, what)
	}
	return notKnown("INFO does not tell %s here: look it up where the server is run", what)
}

// number is a field that is a whole number.
func (n *node) number(field string) (int64, bool) {
	v, err := strconv.ParseInt(n.fields[field], 10, 64)
	return v, err == nil
}

func (n *node) version() Finding {
	name, version, least := "Valkey", n.fields["valkey_version"], [2]int{7, 2}
	if version == "" {
		name, version, least = "Redis", n.fields["redis_version"], [2]int{6, 2}
	}
	if version == "" {
		return n.untold("its version")
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return notKnown("the server calls its version %q: pawl needs Redis 6.2 or newer, or Valkey", version)
	}
	if major < least[0] || major == least[0] && minor < least[1] {
		return wrong("this is %s %s, which lacks commands that the scripts use: run Redis 6.2 or newer, or Valkey 8", name, version)
	}
	return good("%s %s", name, version)
}

func (n *node) role() Finding {
	switch role := n.fields["role"]; role {
	case "":
		return n.untold("its role")
	case "master":
		return good("a master, which takes writes")
	default:
		return wrong("this is a replica, which refuses all that writes with READONLY: connect to its master, %s:%s, or by redis.NewFailoverClient to whichever is the master",
			n.fields["master_host"], n.fields["master_port"])
	}
}

func (n *node) cluster() Finding {
	switch {
	case n.lost != nil:
		return wrong("this master cannot be reached, so no call for the queues in its slots is answered (%v): start it, or let a replica take over", n.lost)
	case n.clusterClient:
		switch state := n.fields["cluster_state"]; {
		case n.clusterNo != nil:
			return notKnown("CLUSTER INFO is refused (%v): ask the server as another user, or let this one run it", n.clusterNo)
		case state != "ok":
			return wrong("cluster_state is %s, and calls are refused with CLUSTERDOWN: have all 16384 slots served by masters that run; CLUSTER NODES shows which are not", state)
		}
		return good("cluster_state is ok")
	}
	switch n.fields["cluster_enabled"] {
	case "":
		return n.untold("whether it is part of a cluster")
	case "0":
		return good("no cluster")
	}
	return wrong("the server is part of a cluster and the client is for a single server: queues in the slots of other servers are refused with MOVED. Make the client by redis.NewClusterClient")
}

func (n *node) policy() Finding {
	policy := firstOf(n.fields["maxmemory_policy"], n.fields["maxmemory-policy"])
	switch {
	case policy == "":
		return n.untold("maxmemory-policy")
	case policy == "noeviction":
		return good("noeviction")
	case strings.HasPrefix(policy, "volatile-"):
		return wrong("%s: when memory is full Redis drops keys that expire: the answers it keeps for calls that are sent again, so that an enqueue may add a second job, and the windows of unique and idempotency keys, so that a duplicate gets through. Set maxmemory-policy noeviction", policy)
	}
	return wrong("%s: when memory is full Redis drops any key, whole queues with all their jobs among them. Set maxmemory-policy noeviction", policy)
}

func (n *node) memory() Finding {
	most, ok := n.number("maxmemory")
	if !ok {
		return n.untold("maxmemory")
	}
	if most == 0 {
		return wrong("there is no limit: a backlog grows until the system has no memory left and kills Redis, instead of an Enqueue being refused with ErrFull. Set maxmemory below what the machine can give, with room for the copy that a snapshot or an AOF rewrite needs")
	}
	used, ok := n.number("used_memory")
	if !ok {
		return n.untold("how much of maxmemory is used")
	}
	apart, _ := n.number("mem_not_counted_for_evict") // buffers for replicas and the AOF
	if used -= apart; used/9 > most/10 {
		return wrong("%d MiB of %d MiB are used, more than nine tenths: at the limit each Enqueue is refused with ErrFull. Set maxmemory higher, or delete what is not needed; dead jobs stay for Config.DeadRetention", used>>20, most>>20)
	}
	return good("there is a limit, and no more than nine tenths of it are used")
}

func (n *node) appendOnly() Finding {
	switch firstOf(n.fields["aof_enabled"], n.fields["appendonly"]) {
	case "":
		return n.untold("appendonly")
	case "1", "yes":
		return good("yes")
	}
	return wrong("there is no AOF: a restart loses every job and outcome since the last snapshot, or all of them if there are no snapshots. Set appendonly yes, first by CONFIG SET in the running server and then in its file: a server that is only restarted with it starts empty")
}

func (n *node) appendSync() Finding {
	aof, sync := firstOf(n.fields["aof_enabled"], n.fields["appendonly"]), n.fields["appendfsync"]
	switch {
	case aof == "0" || aof == "no":
		return good("of no effect without an AOF")
	case n.lost != nil:
		return n.untold("appendfsync")
	case n.configNo != nil:
		return notKnown("CONFIG GET is refused (%v): ask the server for appendfsync as another user; it should be everysec or always", n.configNo)
	case sync == "always":
		return good("always: nothing that was acknowledged is lost, if the disk keeps its word")
	case sync == "everysec":
		return good("everysec: about the last 2 s are lost if the power or the kernel fails, and perhaps if Redis is killed while the disk is slow; always loses nothing, and is slower")
	case sync == "no":
		return wrong("no: the kernel decides when to write to the disk, and half a minute may be lost if it or the power fails. Set appendfsync everysec, or always")
	}
	return notKnown("the server does not tell appendfsync: look it up where the server is run; it should be everysec or always")
}

func (n *node) disk() Finding {
	const advice = "Make room on its disk or correct the rights of its folder; the server's log has the reason"
	switch {
	case n.fields["rdb_last_bgsave_status"] == "" && n.fields["aof_last_write_status"] == "":
		return n.untold("whether it could write to its disk")
	case n.fields["aof_last_write_status"] == "err":
		return wrong("the last write to the AOF failed, and all that writes is refused with MISCONF. %s", advice)
	case n.fields["rdb_last_bgsave_status"] == "err":
		return wrong("the last snapshot failed; with stop-writes-on-bgsave-error, which is on unless it was set to no, all that writes is refused with MISCONF. %s", advice)
	case n.fields["aof_last_bgrewrite_status"] == "err":
		return wrong("the last rewrite of the AOF failed, so the AOF grows without end. %s", advice)
	}
	return good("the last writes to the disk went well")
}

func (n *node) minReplicas() Finding {
	if n.fields["role"] == "" {
		return n.untold("how many replicas are connected")
	}
	have, on := n.number("min_slaves_good_slaves") // is told only where a number is demanded
	if !on {
		return good("none are demanded")
	}
	want, ok := n.number("min-replicas-to-write")
	if !ok {
		if have > 0 {
			return notKnown("%d replicas are connected, and CONFIG GET does not tell how many min-replicas-to-write demands (%v): ask the server as another user", have, n.configNo)
		}
		want = 1 // at least
	}
	if have < want {
		return wrong("%d replicas keep up and min-replicas-to-write demands %d: all that writes is refused with NOREPLICAS. Start the replicas, or set min-replicas-to-write to what there is", have, want)
	}
	return good("as many replicas keep up as min-replicas-to-write demands")
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
