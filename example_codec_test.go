package pawl_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"

	"github.com/pawlq/pawl"
)

// gobCodec stores arguments in the encoding of Go. Producers and workers of a
// queue need the same codec.
type gobCodec struct{}

func (gobCodec) Encode(_ string, v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

func (gobCodec) Decode(_ string, data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

func ExampleCodec() {
	m := inMemory()
	defer m.stop()
	client := must(pawl.New(m.rdb, pawl.Config{Codec: gobCodec{}, Hooks: []pawl.Hook{m}}))
	must(client.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")}))
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Println(job.Args.UserID)
		return nil
	})
	m.run(w, 1)
	// Output: 42
}
