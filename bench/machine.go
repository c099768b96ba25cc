package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine is what this runs on.
func machine() string {
	cpu := "unknown CPU"
	text, _ := os.ReadFile("/proc/cpuinfo")
	if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(text); found != nil {
		cpu = string(found[1])
	}
	return fmt.Sprintf("%s, %d CPUs, %s/%s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// moduleVersion is what this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}

// pawlVersion adds the commit to a version that is none.
func pawlVersion() string {
	version := moduleVersion("github.com/pawlq/pawl")
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if commit := strings.TrimSpace(string(out)); err == nil && commit != "" {
		version += " " + commit
	}
	return version
}

var redisVersionText = regexp.MustCompile(`v=(\S+)`)

func redisVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("redis-server: %w", err)
	}
	if found := redisVersionText.FindSubmatch(out); found != nil {
		return string(found[1]), nil
	}
	return strings.TrimSpace(string(out)), nil
}
