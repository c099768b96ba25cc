// Command chaoschild is a child of a chaos run by itself. The tests build it with
// bugs in pawl's own code, which a child that is the test binary cannot have.
package main

import "github.com/pawlq/pawl/internal/chaos"

func main() { chaos.Child() }
