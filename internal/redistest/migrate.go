package redistest

import "fmt"

// Migrate moves the slot of a key to another master, one key at a time, as
// redis-cli does. Between any two keys it calls between with their number so
// far: first with 0, when both masters know of the move and nothing has moved.
// It fails the test if a key is on both.
func (c *Cluster) Migrate(key string, to *Server, between func(moved int)) {
	c.t.Helper()
	slot := c.Slot(key)
	source, target := c.masterOf(slot), c.index(to)
	c.do(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[source])
	c.do(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[target])
	for moved := 0; ; moved++ {
		between(moved)
		keys := c.keys(source, slot, 1)
		if len(keys) == 0 {
			break
		}
		// NOKEY, not an error here: it has expired meanwhile.
		c.do(source, "MIGRATE", "127.0.0.1", to.port, keys[0], 0, 5000)
	}
	// The target first: if it failed afterwards, the slot would be nobody's.
	for _, i := range []int{target, source} {
		c.do(i, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[target])
	}
}

// Keys is the keys of a key's slot that a node holds.
func (c *Cluster) Keys(node *Server, key string) []string {
	c.t.Helper()
	return c.keys(c.index(node), c.Slot(key), allSlots)
}

func (c *Cluster) keys(i, slot, most int) []string {
	c.t.Helper()
	keys, err := c.rdbs[i].ClusterGetKeysInSlot(c.t.Context(), slot, most).Result()
	if err != nil {
		c.t.Fatalf("redistest: keys of slot %d: %v", slot, err)
	}
	return keys
}

// OtherMaster is a master that does not have the slot of a key.
func (c *Cluster) OtherMaster(key string) *Server {
	c.t.Helper()
	own := c.masterOf(c.Slot(key))
	for slot := 0; slot < allSlots; slot += 512 {
		if i := c.masterOf(slot); i != own {
			return c.Nodes[i]
		}
	}
	c.t.Fatalf("redistest: one master has all slots")
	return nil
}

// KeyElsewhere is a name, made from a pattern with one %d, whose slot another
// master has than that of a key.
func (c *Cluster) KeyElsewhere(pattern, key string) string {
	c.t.Helper()
	for n := 0; ; n++ {
		name := fmt.Sprintf(pattern, n)
		if c.MasterOf(name) != c.MasterOf(key) {
			return name
		}
	}
}
