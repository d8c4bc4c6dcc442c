package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func take(string, string) Verdict { return Take }

// drain takes items out and returns them, up to n.
func drain(q *Queue[string], n int) []string {
	var out []string
	for range n {
		item, ok := q.Next(take)
		if !ok {
			break
		}
		out = append(out, item)
	}
	return out
}

func fill(q *Queue[string], tenant string, n int) {
	for i := range n {
		q.Add(tenant, fmt.Sprint(tenant, i))
	}
}

func TestATenantWithOneItemIsServedBeforeThousandsOfAnother(t *testing.T) {
	for _, served := range []int{0, 1, 2, 5000} {
		var q Queue[string]
		fill(&q, "many", 10_000)
		drain(&q, served)
		q.Add("few", "one")
		if got := drain(&q, 2); !slices.Contains(got, "one") || served > 0 && got[0] != "one" {
			t.Errorf("after %d of the other's: %v", served, got)
		}
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	var q Queue[string]
	fill(&q, "a", 3)
	fill(&q, "b", 1)
	fill(&q, "c", 2)
	if got := strings.Join(drain(&q, 10), " "); got != "a0 b0 c0 a1 c1 a2" {
		t.Errorf("got %s, want %q", got, "a0 b0 c0 a1 c1 a2")
	}
}

func TestATenantMayBeginABurst(t *testing.T) {
	q := Queue[string]{Burst: 2}
	fill(&q, "a", 5)
	fill(&q, "b", 1)
	fill(&q, "c", 3)
	if got := strings.Join(drain(&q, 3), " "); got != "a0 a1 b0" {
		t.Errorf("got %s, want %q", got, "a0 a1 b0")
	}
	q.Add("new", "new0")
	q.Add("a", "a5")
	if got := strings.Join(drain(&q, 10), " "); got != "c0 c1 new0 a2 a3 c2 a4 a5" {
		t.Errorf("then %s, want %q", got, "c0 c1 new0 a2 a3 c2 a4 a5")
	}
}

// TestBurstsEndWhereNoMoreIsAdmitted has others go on.
func TestBurstsEndWhereNoMoreIsAdmitted(t *testing.T) {
	q := Queue[string]{Burst: 10}
	fill(&q, "a", 10)
	fill(&q, "b", 10)
	of := map[string]int{}
	var got []string
	for range 6 {
		item, ok := q.Next(func(tenant string, _ string) Verdict {
			if of[tenant] == 3 {
				return SkipTenant
			}
			return Take
		})
		of[item[:1]]++
		if got = append(got, item); !ok {
			t.Fatalf("nothing after %v", got)
		}
	}
	if want := "a0 a1 a2 b0 b1 b2"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestBurstsCostTurns has shares stay those of the weights.
func TestBurstsCostTurns(t *testing.T) {
	q := Queue[string]{Burst: 10, Weight: func(tenant string) int { return map[string]int{"heavy": 3}[tenant] }}
	for _, tenant := range []string{"light", "heavy"} {
		fill(&q, tenant, 1000)
	}
	counts := map[string]int{}
	for _, item := range drain(&q, 400) {
		counts[strings.TrimRight(item, "0123456789")]++
	}
	if counts["light"] < 90 || counts["light"] > 110 {
		t.Errorf("of 400 turns there were %v", counts)
	}
}

func TestTurnsFollowTheWeights(t *testing.T) {
	weights := map[string]int{"light": 1, "heavy": 3}
	q := Queue[string]{Weight: func(tenant string) int { return weights[tenant] }} // That of a third is 0, which counts as 1.
	for _, tenant := range []string{"light", "heavy", "third"} {
		fill(&q, tenant, 1000)
	}
	counts := map[string]int{}
	for _, item := range drain(&q, 500) {
		counts[strings.TrimRight(item, "0123456789")]++
	}
	for tenant, want := range map[string]int{"light": 100, "heavy": 300, "third": 100} {
		if got := counts[tenant]; got < want-2 || got > want+2 {
			t.Errorf("%s had %d of 500 turns, want %d", tenant, got, want)
		}
	}
}

// TestAddingAnItemAgainAtOnceGivesNoMoreTurns has a tenant add its next item whenever one was taken, as if it were new each time.
func TestAddingAnItemAgainAtOnceGivesNoMoreTurns(t *testing.T) {
	var q Queue[string]
	for i := range 9 {
		fill(&q, string(rune('a'+i)), 1000)
	}
	q.Add("z", "again")
	had := 0
	for range 1000 {
		if item, _ := q.Next(take); item == "again" {
			had++
			q.Add("z", "again")
		}
	}
	if had < 99 || had > 101 {
		t.Errorf("it had %d of 1000 turns of ten tenants", had)
	}
}

// TestASkippedTenantSavesNoTurns holds one of two tenants back for a while.
func TestASkippedTenantSavesNoTurns(t *testing.T) {
	var q Queue[string]
	fill(&q, "held", 100)
	fill(&q, "free", 1000)
	for range 500 {
		q.Next(func(tenant, _ string) Verdict {
			if tenant == "held" {
				return SkipTenant
			}
			return Take
		})
	}
	had := 0
	for _, item := range drain(&q, 20) {
		if strings.HasPrefix(item, "held") {
			had++
		}
	}
	if had < 10 || had > 11 {
		t.Errorf("it had %d of 20 turns of two tenants", had)
	}
}

// TestNothingWaitsForMoreThanARound adds and takes at random. Behind how many others an item was at most when it came is known: as many
// of each other tenant as wait of its own before it, and one.
func TestNothingWaitsForMoreThanARound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var q Queue[string]
	const tenants = 7
	latest, turn := map[string]int{}, 0
	for i := range 20_000 {
		if random.IntN(5) < 3 {
			tenant := fmt.Sprint(min(random.IntN(tenants), random.IntN(tenants)))
			item := fmt.Sprint(tenant, "/", i)
			q.Add(tenant, item)
			latest[item] = turn + tenants*(q.Of(tenant)+1)
		}
		if random.IntN(2) == 0 {
			turn++
			if item, ok := q.Next(take); ok {
				if turn > latest[item] {
					t.Fatalf("%s was taken at turn %d, and should have been by %d", item, turn, latest[item])
				}
				delete(latest, item)
			}
		}
	}
	for _, item := range drain(&q, len(latest)) {
		delete(latest, item)
	}
	if len(latest) != 0 || q.Len() != 0 {
		t.Errorf("%d items were never taken, %d wait", len(latest), q.Len())
	}
}

func TestNextFollowsTheVerdictAboutEachItem(t *testing.T) {
	var q Queue[string]
	fill(&q, "a", 3)
	fill(&q, "b", 2)
	verdicts := map[string]Verdict{"a0": Drop, "a1": Skip, "a2": SkipTenant, "b0": Skip, "b1": Take}
	var looked []string
	item, ok := q.Next(func(_, item string) Verdict {
		looked = append(looked, item)
		return verdicts[item]
	})
	if !ok || item != "b1" || strings.Join(looked, " ") != "a0 a1 a2 b0 b1" || q.Len() != 3 {
		t.Errorf("took %s, %t, after %v; %d wait", item, ok, looked, q.Len())
	}
	if item, ok = q.Next(func(string, string) Verdict { return Drop }); ok || q.Len() != 0 {
		t.Errorf("took %s of what was dropped, %d wait", item, q.Len())
	}
}

func TestLowPriorityComesAfterTheSameTenantOnly(t *testing.T) {
	var q Queue[string]
	q.AddBehind("a", "a late")
	q.Add("a", "a soon")
	q.AddBehind("b", "b late")
	q.Add("c", "c soon")
	if got := strings.Join(drain(&q, 9), ", "); got != "a soon, b late, c soon, a late" {
		t.Errorf("got %s, want %q", got, "a soon, b late, c soon, a late")
	}
}

func TestAnItemIsRemovedOnce(t *testing.T) {
	var q Queue[string]
	first, second := q.Add("a", "first"), q.Add("a", "second")
	if !q.Remove(first) || q.Remove(first) || q.Of("a") != 1 {
		t.Errorf("%d wait", q.Of("a"))
	}
	if got := drain(&q, 2); len(got) != 1 || q.Remove(second) {
		t.Errorf("got %v, and can remove what was taken", got)
	}
}

// TestIdleTenantsAreForgotten has many tenants come once while one is always there.
func TestIdleTenantsAreForgotten(t *testing.T) {
	var q Queue[string]
	fill(&q, "always", 10)
	for i := range 10_000 {
		q.Add("always", "more")
		q.Add(fmt.Sprint("once", i), "one")
		drain(&q, 2)
		if n := len(q.tenants); n > 20 || n != len(q.order) {
			t.Fatalf("%d tenants are known, %d in order, when 1 or 2 wait", n, len(q.order))
		}
	}
	drain(&q, q.Len())
	if len(q.tenants) != 0 || len(q.order) != 0 {
		t.Errorf("%d tenants are known when nothing waits", len(q.tenants))
	}
}

func BenchmarkQueueOfAThousandTenants(b *testing.B) {
	var q Queue[string]
	for i := range 1000 {
		fill(&q, fmt.Sprint("t", i, "/"), 10)
	}
	for b.Loop() {
		item, _ := q.Next(take)
		tenant, _, _ := strings.Cut(item, "/")
		q.Add(tenant+"/", item)
	}
}
