//go:build e2e

package availability

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// report collects the results of the attacks.
type report struct {
	limit         string
	before, after *window
	rows          []*outcome
}

func (r *report) add(all []*outcome) { r.rows = append(r.rows, all...) }

// judge logs the measurements without attacks and the table. With ATTACKS=write it also writes the table into its page.
func (r *report) judge(t *testing.T) {
	t.Helper()
	for _, w := range []*window{r.before, r.after} {
		t.Logf("%s: %s; operator %d MiB, boxes %d MiB", w.name, w.latency, w.spent.own>>20, w.spent.boxes>>20)
	}
	if grown := float64(r.after.spent.usual) / float64(r.before.spent.usual); grown > mostGrowth {
		t.Errorf("after all attacks the operator has %.2f times the memory of before", grown)
	}
	t.Logf("all attacks:\n%s", r.markdown())
	if os.Getenv("ATTACKS") != "write" {
		return
	}
	if err := r.write(); err != nil {
		t.Error(err)
	}
}

// page is the file with the table.
const page = "../../../docs/attacks.md"

func (r *report) write() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(string(text), "| # |")
	return os.WriteFile(page, []byte(head+r.markdown()), 0o644)
}

func (r *report) markdown() string {
	var out strings.Builder
	head := []string{"#", "what is attacked", "with what", "another's p99, one attacker", "three", "operator, MiB", "restarts",
		"CPU of processes, s", "reported after, s", "removed after, s", ""}
	fmt.Fprintf(&out, "| %s |\n%s|\n", strings.Join(head, " | "), strings.Repeat("|---", len(head)))
	n := 0
	for _, x := range boxed {
		for _, a := range x.attacks {
			one, three := r.of(a.key, 1), r.of(a.key, len(attackers))
			if one == nil && three == nil {
				continue
			}
			n++
			fmt.Fprintf(&out, "| %d | %s | %s | %s |\n", n, x.name, a.name, strings.Join(cells(one, three), " | "))
		}
	}
	fmt.Fprintf(&out, "\nUndisturbed: %s before, %s after; the operator itself had %d MiB, and %d MiB after. %s.\n",
		r.before.latency, r.after.latency, r.before.spent.own>>20, r.after.spent.own>>20, r.limit)
	return out.String()
}

// of returns the result of an attack by that many tenants. Of several, it is the one with the longest latency.
func (r *report) of(key string, by int) (worst *outcome) {
	for _, o := range r.rows {
		if o.key == key && (o.by == 1) == (by == 1) && (worst == nil || o.w.latency.p99 > worst.w.latency.p99) {
			worst = o
		}
	}
	return worst
}

// cells are the measurements of an attack's runs. Most cells show the maximum.
func cells(runs ...*outcome) []string {
	var all []string
	var own int64
	var restarts int
	var cpu, reported, gone float64
	held := true
	for _, o := range runs {
		if o == nil {
			all = append(all, "")
			continue
		}
		all = append(all, fmt.Sprintf("%.2f s", o.w.latency.p99))
		own, restarts, cpu = max(own, o.w.spent.own), max(restarts, o.w.spent.restarts), max(cpu, o.w.spent.cpu)
		reported, gone = max(reported, o.reportedAfter.Seconds()), max(gone, o.w.gone.Seconds())
		held = held && o.err == nil && len(o.w.broken) == 0
	}
	what := "held"
	if !held {
		what = "**not held**"
	}
	return append(all, fmt.Sprint(own>>20), fmt.Sprint(restarts), fmt.Sprintf("%.1f", cpu), fmt.Sprintf("%.1f", reported), fmt.Sprintf("%.1f", gone), what)
}
