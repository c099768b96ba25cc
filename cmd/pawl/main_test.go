package main

import (
	"flag"
	"os"
	"testing"
)

// update rewrites the golden files and the manual in README.md.
var update = flag.Bool("update", false, "rewrite the golden files and the manual in README.md")

func TestMain(m *testing.M) {
	flag.Parse()
	// What is set where the tests run is not meant for them.
	for _, name := range []string{"REDIS_URL", "PAWL_REDIS_PASSWORD", "PAWL_NAMESPACE"} {
		_ = os.Unsetenv(name)
	}
	os.Exit(m.Run())
}
