package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// What is measured: the BullMQ of the day, and the ioredis that it is tested with.
const (
	bullmqVersion  = "6.7.0"
	ioredisVersion = "5.11.1"
)

const installTimeout = 3 * time.Minute

//go:embed bullmq/bench.js
var bullmqScript []byte

func bullmqSystem() *system {
	var home, node string // with the packages; the version of Node
	open := func(ctx context.Context, at address) (session, error) {
		cmd := exec.Command("node", "bench.js")
		cmd.Dir = home
		return startRemote(ctx, cmd, at)
	}
	return &system{
		name:     "bullmq",
		settings: "one process with one Worker, concurrency = slots; removeOnComplete, as the others do; bulk: 4 callers of addBulk with 250 jobs each",
		slow:     true,
		can:      []need{needsBulk, needsQueue, needsRedis},
		prepare: func(ctx context.Context, dir string) (func(), error) {
			home = filepath.Join(dir, "bullmq")
			var err error
			node, err = installBullMQ(ctx, home)
			return nil, err
		},
		versions: func() map[string]string {
			return map[string]string{"bullmq": bullmqVersion, "ioredis": ioredisVersion, "Node": node}
		},
		store: redisStore,
		open:  open,
		spawn: open,
	}
}

// installBullMQ puts the packages into a folder of their own.
func installBullMQ(ctx context.Context, home string) (node string, err error) {
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", errors.New("no " + name + " on PATH")
		}
	}
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(home, "bench.js"), bullmqScript, 0o600); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--no-save",
		"bullmq@"+bullmqVersion, "ioredis@"+ioredisVersion)
	install.Dir = home
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w: %s", err, out)
	}
	return strings.TrimSpace(string(version)), nil
}
