package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// What an outbox keeps of a job until it can be enqueued: nothing here but the last
// call needs Redis. Package pawlsql has one for SQL databases.
func ExampleConfig_Prepare() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()

	job, opts, err := pawl.Config{}.Prepare(ctx, "emails", Welcome{UserID: 42}, pawl.Delay(time.Hour))
	fmt.Printf("%s %s %T %v\n", job.Name, job.Payload, opts[0], err)

	jobs := must(m.Queue("emails").EnqueueMany(ctx, []pawl.Item{{Args: job, Options: opts}}))
	fmt.Println(must(m.Queue("emails").Get(ctx, jobs[0].ID)).State)
	// Output:
	// welcome {"user_id":42} pawl.Delay <nil>
	// delayed
}

// Several jobs of bytes in one call.
func ExampleRaw_Kind() {
	m := inMemory()
	defer m.stop()

	photo := pawl.Raw{Name: "thumbnail", Payload: []byte{0xff, 0xd8}}
	fmt.Println(photo.Kind())
	jobs := must(m.Queue("images").EnqueueMany(context.Background(), []pawl.Item{{Args: photo}, {Args: photo}}))
	fmt.Println(len(jobs))
	// Output:
	// thumbnail
	// 2
}
