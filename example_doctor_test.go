package pawl_test

import (
	"context"
	"fmt"
)

// What would hurt in production, and what could not be seen. The server of this
// example is in memory and tells next to nothing of itself.
func ExampleClient_Doctor() {
	client := inMemory()
	defer client.stop()
	// region doctor
	findings, err := client.Doctor(context.Background())
	if err != nil {
		fmt.Println("the server cannot be reached:", err)
	}
	for _, f := range findings {
		if !f.OK { // f.Unknown: the server does not tell
			fmt.Println(f)
		}
	}
	// endregion

	// Output:
	// unknown  version: INFO does not tell its version here: look it up where the server is run
	// unknown  role: INFO does not tell its role here: look it up where the server is run
	// unknown  cluster: INFO does not tell whether it is part of a cluster here: look it up where the server is run
	// unknown  maxmemory-policy: INFO does not tell maxmemory-policy here: look it up where the server is run
	// unknown  maxmemory: INFO does not tell maxmemory here: look it up where the server is run
	// unknown  appendonly: INFO does not tell appendonly here: look it up where the server is run
	// unknown  appendfsync: CONFIG GET is refused (ERR unknown command `config`, with args beginning with: `get`, `appendfsync`, ): ask the server for appendfsync as another user; it should be everysec or always
	// unknown  disk: INFO does not tell whether it could write to its disk here: look it up where the server is run
	// unknown  min-replicas: INFO does not tell how many replicas are connected here: look it up where the server is run
	// unknown  rights: a script that reads runs; only Redis 7 or newer tells whether those that write may, without a write: enqueue a job to see
}
