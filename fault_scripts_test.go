package pawl

// Scripts is the text of every script by name, for a proxy to know their calls.
func Scripts() map[string]string {
	bodies := map[string]string{}
	for name, s := range scripts {
		bodies[name] = s.body
	}
	return bodies
}
