package pawl

import (
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1; nothing is secured by it.
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
)

//go:embed lua
var luaFiles embed.FS

// A script is one verb of lua/, with the shared pieces it includes.
type script struct{ name, body, sha string }

// scripts is all of them by name, for those who look at their texts.
var scripts = map[string]*script{}

var (
	scriptEnqueue = loadScript("enqueue")
	scriptLease   = loadScript("lease")
	scriptSettle  = loadScript("settle")
	scriptFinish  = loadScript("finish")
	scriptRetry   = loadScript("retry")
	scriptBury    = loadScript("bury")
	scriptClaim   = loadScript("claim")
	scriptExtend  = loadScript("extend")
	scriptRelease = loadScript("release")
	scriptCancel  = loadScript("cancel")
	scriptRedrive = loadScript("redrive")
	scriptDelete  = loadScript("delete")
	scriptDeaths  = loadScript("deaths")
	scriptInspect = loadScript("inspect")
	scriptOver    = loadScript("over")
	scriptStats   = loadScript("stats")
	scriptWake    = loadScript("wake")
	scriptStop    = loadScript("stop")
	scriptCheck   = loadScript("check")
	scriptMarks   = loadScript("marks")

	scriptList       = loadScript("list")
	scriptPurge      = loadScript("purge")
	scriptReschedule = loadScript("reschedule")
	scriptPause      = loadScript("pause")
	scriptDestroy    = loadScript("destroy")
	scriptFree       = loadScript("free")
	scriptMinutes    = loadScript("minutes")
	scriptBeat       = loadScript("beat")
	scriptMend       = loadScript("mend")
	scriptUnpark     = loadScript("unpark")
	scriptTrim       = loadScript("trim")
	scriptForget     = loadScript("forget")
	scriptWorkers    = loadScript("workers")
	scriptProgress   = loadScript("progress")

	scriptSchedule  = loadScript("schedule")
	scriptSchedules = loadScript("schedules")
	scriptTick      = loadScript("tick")
)

// loadScript puts the files named by "-- include:" lines in the place of those
// lines. One that only a branch needs stands in it: to make a function costs Redis
// something, whether or not it is called (docs/performance.md). It panics on a
// missing file: that is a build that cannot work at all, found by any test.
func loadScript(name string) *script {
	var body strings.Builder
	include(&body, name)
	s := &script{name: name}
	s.set(body.String())
	scripts[name] = s
	return s
}

// include writes a file, and those that it names. None names one that names it.
func include(body *strings.Builder, name string) {
	for line := range strings.Lines(readLua(name)) {
		if lib, ok := strings.CutPrefix(strings.TrimSpace(line), "-- include: "); ok {
			include(body, "lib/"+strings.TrimSpace(lib))
		} else {
			body.WriteString(withoutComments(line))
		}
	}
}

func (s *script) set(body string) {
	sum := sha1.Sum([]byte(body)) //nolint:gosec // see the import
	s.body, s.sha = body, hex.EncodeToString(sum[:])
}

// withoutComments drops the lines that are comments: Redis keeps and parses
// every byte of a script.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func readLua(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("pawl: script %s is not in this build: %v", name, err))
	}
	return string(text)
}
