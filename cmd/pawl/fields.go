package main

import (
	"fmt"
	"reflect"
	"strings"
)

// objects are what each command writes as JSON.
var objects = []struct {
	commands string
	object   any
}{
	{"stats", statsLine{}},
	{"queues", queueLine{}},
	{"workers", workerLine{}},
	{"jobs; job, unless it is dead", jobLine{}},
	{"dead list, dead show; job of a dead one", deadLine{}},
	{"    errors", attemptLine{}},
	{"dead groups", groupLine{}},
	{"dead redrive", redriveLine{}},
	{"    refused", refusedLine{}},
	{"dead redrive --payload-file", repairedLine{}},
	{"purge, dead purge", removedLine{}},
	{"cancel, run-now, reschedule, dead delete: one for each job", doneLine{}},
	{"pause, resume", pauseLine{}},
	{"destroy", destroyLine{}},
	{"enqueue, schedules trigger", enqueuedLine{}},
	{"schedules list", scheduleLine{}},
	{"schedules pause, resume, remove", scheduleDone{}},
	{"check: one for each queue", checkLine{}},
	{"    violations", violationLine{}},
	{"doctor: one for each finding", findingLine{}},
}

// fieldsText lists the fields of each object, in their order, and what they are.
func fieldsText() string {
	var b strings.Builder
	b.WriteString("One object a line. A \"?\" behind a type: or null.\n")
	for _, o := range objects {
		name := strings.TrimSpace(o.commands)
		margin := o.commands[:len(o.commands)-len(name)]
		fmt.Fprintf(&b, "\n%s%s\n", margin, name)
		line := margin + "   "
		kind := reflect.TypeOf(o.object)
		for i := range kind.NumField() {
			f := kind.Field(i)
			word := " " + f.Tag.Get("json") + " " + jsonType(f.Type)
			if i < kind.NumField()-1 {
				word += ","
			}
			if len(line)+len(word) > helpWidth-4 {
				b.WriteString(line + "\n")
				line = margin + "   "
			}
			line += word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// jsonType is what a field is in JSON.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem()) + "?"
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "object"
	case reflect.Struct:
		return "time?" // a moment
	}
	return "number"
}
