package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Export is a table to be written to a file.
type Export struct {
	Table string `json:"table"`
	Pages int    `json:"pages"`
}

func (Export) Kind() string { return "export" }

// region export-handler

// File is the result of an Export. It says where the thing is: a result is as small as a
// payload.
type File struct {
	Path string `json:"path"`
	Rows int    `json:"rows"`
}

// export reads page by page, and says how far it is.
func export(ctx context.Context, job *pawl.Job[Export]) (File, error) {
	// The key is the same in each run of this job: one that comes again writes the same file.
	file := File{Path: "exports/" + job.IdempotencyKey() + ".csv"}
	for page := 1; page <= job.Args.Pages; page++ {
		percent := 100 * float64(page-1) / float64(job.Args.Pages)
		err := job.Progress(ctx, percent, fmt.Sprintf("page %d of %d", page, job.Args.Pages))
		if errors.Is(err, pawl.ErrLeaseLost) {
			return File{}, err // another run has the job, or soon will; other errors can wait
		}
		rows, err := copyPage(ctx, job.Args.Table, page)
		if err != nil {
			return File{}, err
		}
		file.Rows += rows
	}
	return file, nil
}

// endregion

const (
	pageTime = 100 * time.Millisecond
	pageRows = 500
	// secret is a table that nobody may read.
	secret = "salaries"
)

// copyPage stands for a query, and an append to the file.
func copyPage(ctx context.Context, table string, page int) (rows int, err error) {
	select {
	case <-time.After(pageTime):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if table == secret && page == 2 {
		return 0, pawl.Permanent(fmt.Errorf("table %s: permission denied", table)) // no retry would cure it
	}
	return pageRows, nil
}
