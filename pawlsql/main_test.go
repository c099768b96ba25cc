package pawlsql_test

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	code := m.Run()
	stopServers()
	os.Exit(code)
}
