package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// parcel is what each job carries, in every system as JSON: its number, by which
// runs are counted, when it should start, and padding up to the size.
type parcel struct {
	Number int    `json:"n"`
	Due    int64  `json:"due"` // microseconds of the wall clock
	Pad    string `json:"pad"`
}

// Kind is for pawl and River.
func (parcel) Kind() string { return "parcel" }

const maxPad = 16 << 10

var padding = strings.Repeat("x", maxPad)

// newParcel makes a parcel whose JSON has this many bytes, if it can be so short.
func newParcel(number int, due int64, bytes int) parcel {
	bare := len(`{"n":,"due":,"pad":""}`) + len(strconv.Itoa(number)) + len(strconv.FormatInt(due, 10))
	return parcel{Number: number, Due: due, Pad: padding[:min(max(bytes-bare, 0), maxPad)]}
}

func (p parcel) encode() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // two numbers and a string
	}
	return text
}

func now() int64 { return time.Now().UnixMicro() }
