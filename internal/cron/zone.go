package cron

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

const maxZone = 64 // bytes; the longest name in use has half

// CheckZone is the error of a text that no time zone can have as its name, or
// that is another zone on another machine. It does not ask whether there is
// one of that name.
func CheckZone(name string) error {
	switch {
	case name == "":
		return errors.New(`the time zone is empty: write a name as "Europe/Berlin", or "UTC"`)
	case len(name) > maxZone || strings.ContainsFunc(name, notOfZone):
		return fmt.Errorf(`%s is no time zone: write a name as "Europe/Berlin", or "UTC"`, shown(name))
	}
	switch strings.ToLower(path.Base(name)) {
	case "local", "localtime", "posixrules":
		return fmt.Errorf(`the time zone %s differs from machine to machine: write a name as "Europe/Berlin", or "UTC"`, shown(name))
	}
	return nil
}

func notOfZone(r rune) bool {
	letter := 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("/_+-", r)
}

// Zone loads a time zone by its name in the IANA database.
func Zone(name string) (*time.Location, error) {
	if err := CheckZone(name); err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`the time zone %s is not known on this machine (%.200s): write a name as "Europe/Berlin", `+
			`or import time/tzdata if the machine has no time zones`, shown(name), err)
	}
	return zone, nil
}
