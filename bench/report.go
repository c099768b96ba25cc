package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// report is all that a run of this program found, as -json writes it.
type report struct {
	Started  time.Time         `json:"started"`
	Took     float64           `json:"took_seconds"`
	Short    bool              `json:"short"`
	Rounds   int               `json:"rounds"`
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	// Systems are the columns, in their order.
	Systems []reportedSystem `json:"systems"`
	// LeftOut says which systems were asked for and not measured, and why.
	LeftOut []string `json:"left_out"`
	Results []result `json:"results"`
}

type reportedSystem struct {
	Name     string `json:"name"`
	Settings string `json:"settings"`
}

// result is one metric of one workload for one system.
type result struct {
	Workload string    `json:"workload"`
	Title    string    `json:"title"`
	Metric   string    `json:"metric"`
	Unit     string    `json:"unit"`
	More     bool      `json:"more_is_better"`
	System   string    `json:"system"`
	N        int       `json:"n"`
	Rounds   []float64 `json:"rounds"`
	Median   float64   `json:"median"`
	// Failed says why there is no value.
	Failed string `json:"failed,omitempty"`
}

func (r *report) failures() int {
	n := 0
	for _, res := range r.Results {
		if res.Failed != "" {
			n++
		}
	}
	return n
}

// goOn takes over what an earlier run has measured, if it was one like this.
func (r *report) goOn(earlier *report) error {
	switch {
	case earlier.Rounds != r.Rounds || earlier.Short != r.Short:
		return fmt.Errorf("the run to go on with has %d rounds, short %v; this one %d, %v", earlier.Rounds, earlier.Short, r.Rounds, r.Short)
	case !slices.Equal(earlier.Systems, r.Systems) || !maps.Equal(earlier.Versions, r.Versions):
		return errors.New("the run to go on with has other systems, settings or versions")
	case earlier.Machine != r.Machine:
		return fmt.Errorf("the run to go on with was on another machine: %s", earlier.Machine)
	}
	r.Started, r.Took, r.Results = earlier.Started, earlier.Took, earlier.Results
	return nil
}

// has reports whether all of a workload was measured.
func (r *report) has(workload string) bool {
	return slices.ContainsFunc(r.Results, func(res result) bool { return res.Workload == workload })
}

// order sorts the results as the workloads are listed, whichever came first.
func (r *report) order() {
	place := map[string]int{}
	for i, w := range workloads() {
		place[w.name] = i
	}
	slices.SortStableFunc(r.Results, func(a, b result) int { return cmp.Compare(place[a.Workload], place[b.Workload]) })
}

// row is a metric of a workload over all systems.
type row struct {
	first result
	by    map[string]result // by system
}

// rows are in the order in which they were measured.
func (r *report) rows() []row {
	var rows []row
	at := map[string]int{}
	for _, res := range r.Results {
		key := res.Workload + "\x00" + res.Metric + "\x00" + res.Unit
		i, ok := at[key]
		if !ok {
			i = len(rows)
			at[key] = i
			rows = append(rows, row{first: res, by: map[string]result{}})
		}
		rows[i].by[res.System] = res
	}
	return rows
}

// ratio is how much a value is of pawl's, if it can be told.
func (r row) ratio(system string) (float64, bool) {
	of, ok := r.by[base]
	res := r.by[system]
	if !ok || of.Failed != "" || res.Failed != "" || of.Median == 0 {
		return 0, false
	}
	return res.Median / of.Median, true
}

// base is the system to which all others are compared.
const base = "pawl"

func (r row) label() string {
	if r.first.Metric == "" {
		return r.first.Title
	}
	return r.first.Title + ": " + r.first.Metric
}
