package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// writeTable writes a table that is Markdown, and readable as it is.
func (r *report) writeTable(w io.Writer) error {
	head := []string{"workload", "unit", "N"}
	for _, s := range r.Systems {
		head = append(head, s.Name)
	}
	lines := [][]string{head}
	for _, row := range r.rows() {
		lines = append(lines, r.line(row))
	}
	var text strings.Builder
	layOut(&text, lines)
	r.notes(&text)
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *report) line(row row) []string {
	n := row.first.N
	if of, ok := row.by[base]; ok {
		n = of.N
	}
	line := []string{row.label(), row.first.Unit, number(float64(n))}
	for _, s := range r.Systems {
		res, ok := row.by[s.Name]
		switch {
		case !ok:
			line = append(line, "–")
		case res.Failed != "":
			line = append(line, "failed")
		default:
			line = append(line, cell(row, res, n))
		}
	}
	return line
}

// cell has the median, the ratio to pawl's, and N where it differs from the row's.
func cell(row row, res result, n int) string {
	var notes []string
	if ratio, ok := row.ratio(res.System); ok && res.System != base {
		notes = append(notes, significant(ratio)+"×")
	}
	if res.N != n {
		notes = append(notes, "N="+number(float64(res.N)))
	}
	text := number(res.Median)
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// number has three digits at least, and commas.
func number(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 100 {
		text := strconv.FormatFloat(math.Abs(math.Round(v)), 'f', 0, 64)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		if v < 0 {
			text = "-" + text
		}
		return text
	}
	return significant(v)
}

// significant has three digits, or two below 1.
func significant(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case math.Abs(v) >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case math.Abs(v) >= 0.001:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// layOut writes the lines as a table; the first one is its head. Columns from the
// third on are numbers.
func layOut(text *strings.Builder, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, field := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(field))
		}
	}
	for k, line := range lines {
		for i, field := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(field))
			if i < 2 {
				field += pad
			} else {
				field = pad + field
			}
			text.WriteString("| " + field + " ")
		}
		text.WriteString("|\n")
		if k == 0 {
			for i, width := range widths {
				if i < 2 {
					text.WriteString("| " + strings.Repeat("-", width) + " ")
				} else {
					text.WriteString("| " + strings.Repeat("-", width-1) + ": ")
				}
			}
			text.WriteString("|\n")
		}
	}
}

// notes say under which circumstances.
func (r *report) notes(text *strings.Builder) {
	fmt.Fprintf(text, "\nMedian of %d rounds; in brackets how many times pawl's value. %s, %.0f s.\n",
		r.Rounds, r.Started.UTC().Format(time.DateTime+" MST"), r.Took)
	if r.Short {
		text.WriteString("A short run (-short): it shows that all of it works, and its figures mean nothing.\n")
	}
	fmt.Fprintf(text, "Machine: %s.\n", r.Machine)
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		versions = append(versions, name+" "+r.Versions[name])
	}
	fmt.Fprintf(text, "Versions: %s.\nRedis: %s.\n", strings.Join(versions, ", "), redisWords())
	for _, s := range r.Systems {
		fmt.Fprintf(text, "%s: %s.\n", s.Name, s.Settings)
	}
	for _, why := range r.LeftOut {
		fmt.Fprintf(text, "Left out: %s.\n", why)
	}
	for _, res := range r.Results {
		if res.Failed != "" {
			fmt.Fprintf(text, "Failed: %s, %s: %s\n", res.Workload, res.System, res.Failed)
		}
	}
}

func redisWords() string {
	words := slices.Clone(redisSettings)
	for i, word := range words {
		if word == "" {
			words[i] = `""`
		}
	}
	return strings.Join(words, " ")
}
