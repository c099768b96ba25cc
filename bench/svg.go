package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// charted are the rows that the chart shows, by workload and metric.
var charted = [][2]string{
	{"enqueue-16", ""}, {"enqueue-bulk", ""}, {"drain-10", ""}, {"drain-100", ""}, {"both", ""}, {"aof", "drain, slots: 100"},
	{"processes", ""}, {"retries", ""}, {"idle", "p99"}, {"load", "p99"}, {"due", "last late"},
}

// Sizes of the chart, in its own units.
const (
	chartWidth  = 760
	labelWidth  = 90  // of a system's name
	valueWidth  = 110 // at the end of a bar
	barHeight   = 14
	barStep     = 18
	titleHeight = 24
	groupGap    = 14
	margin      = 16
)

// colors are of the systems, by their place. They are told apart with any eyes.
var colors = []string{"#0072b2", "#999999", "#e69f00", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442"}

// svg is a bar chart. Each group has a scale of its own, and each bar says its
// value. It has its own background, so that it can be read on dark pages.
func (r *report) svg() string {
	var body strings.Builder
	y := margin
	for _, row := range r.rows() {
		if row.charted() {
			y = r.group(&body, row, y)
		}
	}
	foot := "Medians; in brackets how many times pawl's value. " + r.Machine + ", " + r.Started.UTC().Format(time.DateOnly) + "."
	if r.Short {
		foot += " A short run: figures mean nothing."
	}
	fmt.Fprintf(&body, `<text x="%d" y="%d" fill="#666" font-size="11">%s</text>`+"\n", margin, y+barHeight-groupGap/2, html.EscapeString(foot))
	height := y + barHeight + margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="#222">`+
		"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n%s</svg>\n", chartWidth, height, chartWidth, height, body.String())
}

func (r row) charted() bool {
	for _, c := range charted {
		if r.first.Workload == c[0] && r.first.Metric == c[1] {
			return true
		}
	}
	return false
}

// group draws a row's bars from y on, and returns where the next group starts.
func (r *report) group(body *strings.Builder, row row, y int) int {
	better := "less is better"
	if row.first.More {
		better = "more is better"
	}
	most := 0.0
	for _, res := range row.by {
		if res.Failed == "" {
			most = max(most, res.Median)
		}
	}
	fmt.Fprintf(body, `<text x="%d" y="%d" font-weight="bold">%s <tspan font-weight="normal" fill="#666">%s, %s</tspan></text>`+"\n",
		margin, y+barHeight, html.EscapeString(row.label()), html.EscapeString(row.first.Unit), better)
	y += titleHeight
	for i, s := range r.Systems {
		res, ok := row.by[s.Name]
		if !ok || res.Failed != "" {
			continue
		}
		width := 1.0
		if most > 0 {
			width = max(width, math.Round(res.Median/most*(chartWidth-2*margin-labelWidth-valueWidth)))
		}
		text := number(res.Median)
		if ratio, ok := row.ratio(s.Name); ok && s.Name != base {
			text += " (" + significant(ratio) + "×)"
		}
		fmt.Fprintf(body, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.0f" height="%d" fill="%s"/><text x="%.0f" y="%d">%s</text>`+"\n",
			margin+labelWidth-8, y+barHeight-3, html.EscapeString(s.Name),
			margin+labelWidth, y, width, barHeight, colors[i%len(colors)],
			float64(margin+labelWidth)+width+6, y+barHeight-3, html.EscapeString(text))
		y += barStep
	}
	return y + groupGap
}
