// Package redistest is the rig of the real-Redis tests: servers that a test
// starts and may kill, freeze and restart (Start), a proxy that breaks chosen
// calls at chosen points (NewProxy), and a canonical text of every key, to
// compare before and after (Dump).
//
// Nothing here touches a server that it did not start. Everything may be used
// from parallel tests and ends with the test that asked for it.
package redistest
