package main

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// columns measures text as most terminals show it, whatever the locale says: the output
// for people should not depend on who asks.
var columns = &runewidth.Condition{}

// tablePage is how many rows are held back to find out how wide the columns are. Those of
// later pages may be wider, so that a list of any length is shown as it is read.
const tablePage = 250

// table writes rows under a header, each column as wide as its widest cell.
type table struct {
	out    io.Writer
	head   []string
	cut    map[int]int  // the most columns of the terminal that a cell may take, by its index
	main   int          // the column that is cut last; -1 is none
	right  map[int]bool // numbers
	wide   int          // of the terminal; 0 is not known
	rows   [][]string
	widths []int
	filled map[int]bool // columns that have something in a cell
	gone   map[int]bool // columns that are left out
	begun  bool
}

// uncut is more than an error has, which pawl cuts at 4 KiB, also where each byte is escaped.
const uncut = 32 << 10

// newTable makes a table. A "#" before a name is a column of numbers, a "~" one that may
// be cut. A "+" is one that may be cut too, but after the others, and not where the width is
// not known, as in a pipe: it is the last one, so that no other moves to the right for it.
func (a *app) newTable(head ...string) *table {
	t := &table{out: a.out, cut: map[int]int{}, filled: map[int]bool{}, gone: map[int]bool{}, right: map[int]bool{}, wide: a.width, main: -1}
	for i, name := range head {
		switch name[0] {
		case '#':
			t.right[i], name = true, name[1:]
		case '~':
			t.cut[i], name = max(40, a.width), name[1:]
		case '+':
			t.cut[i], t.main, name = max(40, a.width), i, name[1:]
			if a.width <= 0 {
				t.cut[i] = uncut
			}
		}
		t.head = append(t.head, name)
		t.widths = append(t.widths, columns.StringWidth(name))
	}
	return t
}

// add adds a row. What is in it is made visible here, so that no cell is forgotten.
func (t *table) add(cells ...string) error {
	for i, cell := range cells {
		most, short := t.cut[i]
		if enough := 16 * most; short && len(cell) > enough {
			cell = cell[:enough] // what comes after it is not seen, and may be megabytes
		}
		if cell = visible(cell); short {
			cell = columns.Truncate(cell, most, "…")
		}
		t.filled[i] = t.filled[i] || cell != ""
		if cell == "" {
			cell = "-"
		}
		cells[i] = cell
		t.widths[i] = max(t.widths[i], columns.StringWidth(cell))
	}
	t.rows = append(t.rows, cells)
	if len(t.rows) < tablePage {
		return nil
	}
	return t.write()
}

// flush ends the table, and writes the rows that were held back. A table without rows has no
// header either. If all of it is known, the columns of texts that are empty are left out.
func (t *table) flush() error {
	if !t.begun {
		for i := range t.cut {
			t.gone[i] = !t.filled[i]
		}
	}
	return t.write()
}

// leastWidth is what a column that may be cut has always.
const leastWidth = 8

// fit has the columns that may be cut share what a terminal has left for them. The main one
// takes first, all but the least of the others; of these the short ones are whole, and the
// others alike.
func (t *table) fit() {
	if t.wide <= 0 {
		return
	}
	room, least, texts := t.wide, 0, []int{}
	for i, width := range t.widths {
		if _, short := t.cut[i]; t.gone[i] {
			continue
		} else if short && i != t.main {
			texts, least = append(texts, i), least+min(width, leastWidth)
		} else if !short {
			room -= width
		}
		room -= 2 // between two columns
	}
	room += 2
	if main := t.main; main >= 0 && !t.gone[main] {
		mine := room - least
		for mine < leastWidth { // the row does not fit, and goes on in another line: use that up
			mine += t.wide
		}
		t.widths[main] = min(t.widths[main], mine)
		room -= t.widths[main]
	}
	slices.SortStableFunc(texts, func(a, b int) int { return cmp.Compare(t.widths[a], t.widths[b]) })
	for n, i := range texts {
		t.widths[i] = min(t.widths[i], max(leastWidth, room/(len(texts)-n)))
		room -= t.widths[i]
	}
}

// write writes the rows that were held back.
func (t *table) write() error {
	t.fit()
	if len(t.rows) > 0 && !t.begun {
		t.begun = true
		t.rows = append([][]string{t.head}, t.rows...)
	}
	for _, row := range t.rows {
		if _, err := io.WriteString(t.out, t.line(row)+"\n"); err != nil {
			return err
		}
	}
	t.rows = nil
	return nil
}

func (t *table) line(row []string) string {
	var b strings.Builder
	for i, cell := range row {
		if t.gone[i] {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		if _, short := t.cut[i]; short {
			cell = columns.Truncate(cell, t.widths[i], "…")
		}
		space := strings.Repeat(" ", max(0, t.widths[i]-columns.StringWidth(cell)))
		if t.right[i] {
			b.WriteString(space + cell)
		} else {
			b.WriteString(cell + space)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// facts are names with their values, one a line.
type facts struct {
	names, values []string
}

// add adds a fact. An empty value is none.
func (f *facts) add(name, value string) {
	if value != "" {
		f.names, f.values = append(f.names, name), append(f.values, visible(value))
	}
}

// text adds a text of several lines, indented.
func (f *facts) text(name, value string) {
	if value == "" {
		return
	}
	for i, line := range visibleLines(value) {
		if i > 0 {
			name = ""
		}
		f.names, f.values = append(f.names, name), append(f.values, line)
	}
}

func (f *facts) write(out io.Writer) error {
	wide := 0
	for _, name := range f.names {
		wide = max(wide, len(name))
	}
	for i, name := range f.names {
		line := strings.TrimRight(name+strings.Repeat(" ", wide-len(name)+2)+f.values[i], " ")
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}
