package pawl_test

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/pawlq/pawl"

// exports finds the compiled form of pawl and of what it imports, so that a
// snippet is checked against the package as its users see it.
var exports = sync.OnceValues(func() (map[string]string, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", modulePath)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, &listError{err, stderr.String()}
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return files, nil
})

type listError struct {
	error
	stderr string
}

func (e *listError) Error() string { return "go list: " + e.error.Error() + "\n" + e.stderr }

// compile type-checks the body of a function that uses pawl.
func compile(t *testing.T, body string) error {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED: no go command to compile the snippets with: ", err)
	}
	files, err := exports()
	require.NoError(t, err)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "snippet.go", snippetHead+body+"\n}\n", parser.SkipObjectResolution)
	require.NoError(t, err)
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})}
	_, err = conf.Check("snippet", fset, []*ast.File{file}, nil)
	return err
}

const snippetHead = `package snippet

import (
	"context"
	"time"

	"github.com/pawlq/pawl"
)

type Welcome struct{ UserID int64 }

func (Welcome) Kind() string { return "welcome" }

var (
	Receipt = pawl.Define[string]("receipt", pawl.MaxAttempts(3), pawl.Priority(2))
	byError = pawl.RetryFunc(func(f pawl.Failure) time.Duration { return time.Duration(f.Attempt) * time.Second })
)

func welcome(ctx context.Context, job *pawl.Job[Welcome]) error { return ctx.Err() }
func receipt(ctx context.Context, job *pawl.Job[string]) error  { return pawl.Permanent(ctx.Err()) }

func _(ctx context.Context, q *pawl.Queue, w *pawl.Worker) {
	_, _ = ctx, time.Now
`

func TestOptionsWhereTheyBelong(t *testing.T) {
	t.Parallel()

	for name, body := range map[string]string{
		"of the queue, given to Enqueue": `q.Enqueue(ctx, Welcome{}, pawl.Delay(time.Minute), pawl.Priority(5),
			pawl.Header{Key: "k", Value: "v"}, pawl.ExpireIn(time.Hour), pawl.Unique{Key: pawl.Key("user", 42)})`,
		"of the run, given to Enqueue": `q.Enqueue(ctx, Welcome{}, pawl.MaxAttempts(3), pawl.Timeout(pawl.NoTimeout),
			pawl.MaxCrashes(1), pawl.VisibilityTimeout(time.Minute), pawl.Backoff{Factor: 2})`,
		"of the run, given to Handle": `pawl.Handle(w, welcome, pawl.MaxAttempts(3), pawl.Timeout(pawl.NoTimeout),
			pawl.MaxCrashes(1), pawl.VisibilityTimeout(time.Minute), pawl.DefaultBackoff)`,
		"a RetryFunc, given to Handle":         `pawl.Handle(w, welcome, byError)`,
		"of the run, given to a Kind's Handle": `Receipt.Handle(w, receipt, pawl.MaxAttempts(3), byError)`,
		"of any sort, kept in a list":          `opts := []pawl.Option{pawl.At(time.Now()), pawl.Timeout(time.Minute)}; q.Enqueue(ctx, Receipt.Args("x"), opts...)`,
		"a Policy, kept for both":              `var p pawl.Policy = pawl.MaxAttempts(3); q.Enqueue(ctx, Welcome{}, p); pawl.Handle(w, welcome, p)`,
	} {
		t.Run(name+" compile", func(t *testing.T) {
			t.Parallel()
			require.NoError(t, compile(t, body))
		})
	}
}

func TestMisuseOfOptions(t *testing.T) {
	t.Parallel()

	const (
		notForHandle  = "does not implement pawl.HandleOption"
		notForEnqueue = "does not implement pawl.Option"
	)
	for name, tc := range map[string]struct{ body, says string }{
		"Delay given to Handle":         {`pawl.Handle(w, welcome, pawl.Delay(time.Minute))`, notForHandle},
		"At given to Handle":            {`pawl.Handle(w, welcome, pawl.At(time.Now()))`, notForHandle},
		"Priority given to Handle":      {`pawl.Handle(w, welcome, pawl.Priority(5))`, notForHandle},
		"Header given to Handle":        {`pawl.Handle(w, welcome, pawl.Header{Key: "k", Value: "v"})`, notForHandle},
		"ExpireIn given to Handle":      {`pawl.Handle(w, welcome, pawl.ExpireIn(time.Hour))`, notForHandle},
		"Unique given to Handle":        {`pawl.Handle(w, welcome, pawl.Unique{Key: "k"})`, notForHandle},
		"Delay given to a Kind":         {`Receipt.Handle(w, receipt, pawl.Delay(time.Minute))`, notForHandle},
		"RetryFunc given to Enqueue":    {`q.Enqueue(ctx, Welcome{}, byError)`, notForEnqueue},
		"RetryFunc given to Define":     {`pawl.Define[int]("k", byError)`, notForEnqueue},
		"RetryFunc given by a type":     {`_ = []pawl.Option{byError}`, notForEnqueue},
		"Headers given to Enqueue":      {`q.Enqueue(ctx, Welcome{}, pawl.Headers{"k": "v"})`, notForEnqueue},
		"a bare duration as a Delay":    {`q.Enqueue(ctx, Welcome{}, time.Minute)`, notForEnqueue},
		"a bare number as a Priority":   {`q.Enqueue(ctx, Welcome{}, 5)`, notForEnqueue},
		"arguments without a kind":      {`q.Enqueue(ctx, struct{}{})`, "does not implement pawl.Args"},
		"a Kind in place of its Args":   {`q.Enqueue(ctx, Receipt)`, "does not implement pawl.Args"},
		"arguments of another Kind":     {`Receipt.Args(42)`, "cannot use 42"},
		"a handler of another type":     {`Receipt.Handle(w, welcome)`, "cannot use welcome"},
		"an option of one's own making": {`type mine struct{}; var _ pawl.Option = mine{}`, notForEnqueue},
	} {
		t.Run("does not compile: "+name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, compile(t, tc.body), tc.says)
		})
	}
}
