//go:build e2e

package accidents

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// accident is a row of the table.
type accident struct {
	// mistake is what was done, outcome what must follow, and recovery what restores everything.
	mistake, outcome, recovery string
	// reports are words that the status or the refusal must contain. They may contain $t and $ns.
	reports []string
	on      layout
	// do makes the mistake, read returns the status, and undo runs the recovery.
	do   action
	read reader
	undo action
	// newPods means that pods may be replaced. gone means that everything except data may be missing between mistake and recovery.
	newPods, gone bool
	// newClaims means that claims may be replaced on the same volumes, and may be missing between mistake and recovery.
	newClaims bool
}

// result is the outcome of an accident.
type result struct {
	accident
	took   time.Duration
	passed bool
}

// workers is how many tenants run accidents in parallel, for each layout.
const workers = 3

// TestAccidentsLoseNothing runs all accidents: most in parallel on separate tenants, then those that affect other tenants' deletions, and last
// those of the whole cluster.
func TestAccidentsLoseNothing(t *testing.T) {
	groups := [][]accident{gitAccidents, fileAccidents, kubectlAccidents, sourceAccidents, purposeAccidents}
	table := &table{}
	t.Cleanup(func() { table.print(t) })
	tenantPool := &tenantPool{}
	var parallel []accident
	for _, g := range groups {
		parallel = append(parallel, g...)
	}
	t.Run("parallel", func(t *testing.T) {
		for l := range 2 {
			queue := make(chan accident, len(parallel))
			for _, a := range parallel {
				if a.on == layout(l) {
					queue <- a
				}
			}
			close(queue)
			for w := range workers {
				t.Run(fmt.Sprintf("worker%d%d", l, w), func(t *testing.T) {
					t.Parallel()
					for a := range queue {
						table.run(t, tenantPool, a)
					}
				})
			}
		}
	})
	for _, a := range slices.Concat(confirmedAccidents, clusterAccidents, restoreAccidents) {
		table.run(t, tenantPool, a)
	}
}

// tenantPool holds the tenants that are free for an accident. A tenant whose accident failed is not used again.
type tenantPool struct {
	mu   sync.Mutex
	free [2][]*subject
	made int
}

func (c *tenantPool) take(t *testing.T, l layout) *subject {
	t.Helper()
	c.mu.Lock()
	if n := len(c.free[l]); n > 0 {
		s := c.free[l][n-1]
		c.free[l] = c.free[l][:n-1]
		c.mu.Unlock()
		return s.clone(t)
	}
	c.made++
	name := fmt.Sprintf("team%d", c.made)
	c.mu.Unlock()
	return newSubject(t, name, l)
}

func (c *tenantPool) give(s *subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free[s.layout] = append(c.free[s.layout], s)
}

// table collects the results.
type table struct {
	mu   sync.Mutex
	rows []result
}

func (x *table) run(t *testing.T, c *tenantPool, a accident) {
	began := time.Now()
	r := result{accident: a}
	ran := false
	r.passed = t.Run(strings.ReplaceAll(a.mistake, "/", "|"), func(t *testing.T) {
		ran = true
		s := c.take(t, a.on)
		began = time.Now()
		a.run(s)
		c.give(s)
	})
	r.took = time.Since(began)
	if !ran {
		return // -run selected other accidents.
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rows = append(x.rows, r)
}

// run makes the mistake, checks the objects and the status, and recovers.
func (a accident) run(s *subject) {
	s.t.Helper()
	keep := keep{pods: !a.newPods && !a.gone, claims: !a.newClaims}
	a.do(s)
	s.mustReport(a.read, a.reports)
	s.mustKeep(keep, 4)
	a.undo(s)
	s.waitUntilReady()
	if a.newClaims {
		s.until("the claim has its volume again", s.hasVolume)
	}
	s.mustKeep(keep, 2)
	s.before = s.mustReadState()
}

// page is the file with the table.
const page = "../../docs/accidents.md"

// print logs the table. With ACCIDENTS=write it also writes the table into its page.
func (x *table) print(t *testing.T) {
	var out strings.Builder
	passed := 0
	for n, r := range x.rows {
		what := "lost or not recovered"
		if r.passed {
			what = "held"
			passed++
		}
		fmt.Fprintf(&out, "%3d  %-20s %5.1f s  %s\n", n+1, what, r.took.Seconds(), r.mistake)
	}
	t.Logf("%d of %d accidents lost nothing and were recovered:\n%s", passed, len(x.rows), out.String())
	if os.Getenv("ACCIDENTS") != "write" {
		return
	}
	text, err := os.ReadFile(page)
	if err == nil {
		head, _, _ := strings.Cut(string(text), "| # |")
		err = os.WriteFile(page, []byte(head+x.markdown()), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

func (x *table) markdown() string {
	var out strings.Builder
	out.WriteString("| # | what was done | what happens | what the status says | what brings it back | result |\n|---|---|---|---|---|---|\n")
	for n, r := range x.rows {
		what := "**lost or not recovered**"
		if r.passed {
			what = fmt.Sprintf("held, %.0f s", r.took.Seconds())
		}
		fmt.Fprintf(&out, "| %d | %s | %s | %s | %s | %s |\n", n+1, r.mistake, r.outcome, quote(r.reports), r.recovery, what)
	}
	return out.String()
}

func quote(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, "`"+strings.NewReplacer("$t", "<tenant>", "$home", "<home namespace>", "$ns", "<namespace>", "$r", "<project folder>", "|", "\\|").Replace(w)+"`")
	}
	return strings.Join(all, ", ")
}
