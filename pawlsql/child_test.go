package pawlsql_test

// child is what this test binary does as a child of itself.
func child() bool { return false }
