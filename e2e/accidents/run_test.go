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
	// slip is what was done, fate what becomes of it, mend the right act that brings all back.
	slip, fate, mend string
	// says are words of what the status, or the refusal, says; may hold $t and $ns.
	says []string
	on   layout
	// do is the slip; place is where the status is; back is the right act.
	do    act
	place where
	back  act
	// newPods lets pods be others than before. gone lets them be away between slip and right act, with everything but data.
	newPods, gone bool
	// newClaims lets claims be others on the same volumes, and be away between slip and right act.
	newClaims bool
}

// result is what became of an accident.
type result struct {
	accident
	took   time.Duration
	passed bool
}

// workers is how many tenants have accidents at the same time, for each layout.
const workers = 3

// TestAccidents does all of them: many at once with a tenant each, then those that concern the deletions of others too, one after
// the other, and in the end those of the whole cluster.
func TestAccidents(t *testing.T) {
	groups := [][]accident{gitAccidents, fileAccidents, kubectlAccidents, sourceAccidents, purposeAccidents}
	table := &table{}
	t.Cleanup(func() { table.tell(t) })
	cast := &cast{}
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
						table.run(t, cast, a)
					}
				})
			}
		}
	})
	for _, a := range slices.Concat(confirmedAccidents, clusterAccidents, worldAccidents) {
		table.run(t, cast, a)
	}
}

// cast are the tenants that are free for an accident. One that had an accident which went wrong is not used again.
type cast struct {
	mu   sync.Mutex
	free [2][]*scene
	made int
}

func (c *cast) take(t *testing.T, l layout) *scene {
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
	return newScene(t, name, l)
}

func (c *cast) give(s *scene) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free[s.layout] = append(c.free[s.layout], s)
}

// table gathers what became of the accidents.
type table struct {
	mu   sync.Mutex
	rows []result
}

func (x *table) run(t *testing.T, c *cast, a accident) {
	began := time.Now()
	r := result{accident: a}
	ran := false
	r.passed = t.Run(strings.ReplaceAll(a.slip, "/", "|"), func(t *testing.T) {
		ran = true
		s := c.take(t, a.on)
		began = time.Now()
		a.happen(s)
		c.give(s)
	})
	r.took = time.Since(began)
	if !ran {
		return // -run names others.
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rows = append(x.rows, r)
}

// happen does the slip, looks at what is there and what is said, and brings all back.
func (a accident) happen(s *scene) {
	s.t.Helper()
	keep := keep{pods: !a.newPods && !a.gone, claims: !a.newClaims}
	a.do(s)
	s.says(a.place, a.says)
	s.stands(keep, 4)
	a.back(s)
	s.settled()
	if a.newClaims {
		s.until("the claim has its volume again", s.hasVolume)
	}
	s.stands(keep, 2)
	s.before = s.stand()
}

// page is where the table is written down.
const page = "../../docs/accidents.md"

// tell prints the table, and writes it into its page when asked to by ACCIDENTS=write.
func (x *table) tell(t *testing.T) {
	var out strings.Builder
	passed := 0
	for n, r := range x.rows {
		what := "lost or not mended"
		if r.passed {
			what = "held"
			passed++
		}
		fmt.Fprintf(&out, "%3d  %-20s %5.1f s  %s\n", n+1, what, r.took.Seconds(), r.slip)
	}
	t.Logf("%d of %d accidents lost nothing and were mended:\n%s", passed, len(x.rows), out.String())
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
		what := "**lost or not mended**"
		if r.passed {
			what = fmt.Sprintf("held, %.0f s", r.took.Seconds())
		}
		fmt.Fprintf(&out, "| %d | %s | %s | %s | %s | %s |\n", n+1, r.slip, r.fate, quote(r.says), r.mend, what)
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
