package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`^A client asks for an export, watches it, and fetches the result\.$`,
	`\d+ ms  client  orders    POST /exports +202 Accepted$`,
	`\d+ ms  client  orders    GET … +running, 0 %, page 1 of 14$`,
	`\d+ ms  client  orders    GET … +running, \d\d %, page \d+ of 14$`,
	`\d+ ms  client  orders    GET … +done$`,
	`\d+ ms  client  orders    GET …/result +200 OK  \{"path":"exports/[0-9a-f-]{36}\.csv","rows":7000\}$`,
	`^An export fails for good\. `,
	`\d+ ms  client  salaries  POST /exports +202 Accepted$`,
	`\d+ ms  client  salaries  GET …/result +500 Internal Server Error  the export failed: table salaries: permission denied$`,
	`^A client waits for 0\.2 s and hangs up\. `,
	`\d+ ms  client  invoices  POST /exports +202 Accepted$`,
	`\d+ ms  client  invoices  GET …/result +hangs up$`,
	`\d+ ms  client  invoices  GET …/result +202 Accepted  not yet: ask again$`,
	`\d+ ms  client  invoices  GET …/result +200 OK  \{"path":"exports/[0-9a-f-]{36}\.csv","rows":6000\}$`,
	`^A client does not want its export any more\.$`,
	`\d+ ms  client  archive   GET … +running, 0 %, page 1 of 200$`,
	`\d+ ms  client  archive   DELETE … +202 Accepted$`,
	`\d+ ms  client  archive   GET …/result +410 Gone  the export was cancelled$`,
	`^Results are kept for 2s\.$`,
	`\d+ ms  client            GET …/result +410 Gone  the export is no longer kept$`,
	`\d+ ms  client            GET …/result +410 Gone  the export is no longer kept$`,
	`^What the queue has counted:$`,
	`enqueued 4, done 2, failed 1, dead 1, cancelled 1$`,
	`left: 0 waiting, 0 running, 0 dead, 0 kept$`,
	`check: 0 violations$`,
	`^pawl export: ok$`,
}

// beside is what server and worker say beside it, line by line.
var beside = []string{
	`\d+ ms  worker  orders    starts, 14 pages$`,
	`\d+ ms  worker  orders    is done$`,
	`\d+ ms  worker  salaries  is dead, permanent: table salaries: permission denied$`,
	`\d+ ms  server  invoices  waits no more: the client has gone$`,
	`\d+ ms  worker  invoices  is done$`,
	`\d+ ms  worker  archive   has stopped: the job was cancelled$`,
}

func TestAnExportIsWatchedFetchedLostAndCancelledOverHTTP(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "export", [][]string{told, beside})
	t.Run("told to stop, it gives back what runs and leaves nothing", func(t *testing.T) {
		t.Parallel()
		exampletest.Stopped(t, binary, "export", "page 1 of 200")
	})
}
