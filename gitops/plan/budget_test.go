package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/delivery/quota"
)

// amounts reads a text such as "requests.cpu 8, pods 10"; nil for "".
func amounts(text string) corev1.ResourceList {
	if text == "" {
		return nil
	}
	list := corev1.ResourceList{}
	for each := range strings.SplitSeq(text, ", ") {
		name, amount, _ := strings.Cut(each, " ")
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

func written(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		all = append(all, fmt.Sprintf("%s %s", name, amount.String()))
	}
	return strings.Join(all, ", ")
}

// share reads a text such as "shop: cpu 4 > cpu 8": what the project has, and what it wants.
func share(text string) Share {
	name, amount, _ := strings.Cut(text, ": ")
	has, wants, _ := strings.Cut(amount, "> ")
	s := Share{Project: name, Has: amounts(strings.TrimSpace(has)), Wants: amounts(wants), Requested: amounts(wants)}
	s.Preview = strings.Contains(name, "-pr-")
	return s
}

func TestQuotasFitIntoTheBudgetOfTheirTenant(t *testing.T) {
	tests := map[string]struct {
		limit                      string
		shares                     []string
		refused, used, over, grows string
		shrinks                    string
	}{
		"a first project that fits exactly": {limit: "cpu 8", shares: []string{"shop: > cpu 8"}, used: "cpu 8", grows: "shop"},
		"one that does not":                 {limit: "cpu 8", shares: []string{"shop: > cpu 8001m"}, refused: "shop", used: "cpu 0"},
		"of several, the first by name":     {limit: "cpu 8", shares: []string{"c: > cpu 4", "a: > cpu 6", "b: > cpu 2"}, refused: "c", used: "cpu 8", grows: "a b"},
		"a later one that fits":             {limit: "cpu 8", shares: []string{"a: > cpu 9", "b: > cpu 2"}, refused: "a", used: "cpu 2", grows: "b"},
		"a new one, and what is there":      {limit: "cpu 8", shares: []string{"shop: cpu 6", "blog: > cpu 3"}, refused: "blog", used: "cpu 6"},
		"a shrink counts before a grow":     {limit: "cpu 8", shares: []string{"a: cpu 2 > cpu 6", "z: cpu 6 > cpu 2"}, used: "cpu 8", grows: "a", shrinks: "z"},
		"too small a shrink":                {limit: "cpu 8", shares: []string{"a: cpu 2 > cpu 6", "z: cpu 6 > cpu 3"}, refused: "a", used: "cpu 5", shrinks: "z"},
		"two that swap":                     {limit: "cpu 8, pods 20", shares: []string{"a: cpu 6, pods 5 > cpu 2, pods 15", "b: cpu 2, pods 15 > cpu 6, pods 5"}, used: "cpu 8, pods 20", grows: "a b"},
		"one that gives and takes, and is refused, gives nothing": {
			limit: "cpu 8, pods 20", shares: []string{"a: cpu 6, pods 5 > cpu 2, pods 50", "b: cpu 2 > cpu 6"}, refused: "a b", used: "cpu 8, pods 5",
		},
		"one that gives to an earlier name": {
			limit: "cpu 8, pods 20", shares: []string{"a: cpu 2 > cpu 6", "b: cpu 6, pods 5 > cpu 2, pods 10", "c: > pods 100"}, refused: "c", used: "cpu 8, pods 10", grows: "a b",
		},
		"a budget below what is given":              {limit: "cpu 8", shares: []string{"shop: cpu 12", "blog: cpu 4"}, used: "cpu 16", over: "cpu 8"},
		"then a shrink is allowed":                  {limit: "cpu 8", shares: []string{"shop: cpu 12 > cpu 10", "blog: cpu 4"}, used: "cpu 14", over: "cpu 6", shrinks: "shop"},
		"and no grow":                               {limit: "cpu 8", shares: []string{"shop: cpu 12", "blog: cpu 4 > cpu 5"}, refused: "blog", used: "cpu 16", over: "cpu 8"},
		"and a grow of what is not exceeded":        {limit: "cpu 8, pods 20", shares: []string{"shop: cpu 12, pods 5 > cpu 12, pods 10"}, used: "cpu 12, pods 10", over: "cpu 4", grows: "shop"},
		"and a new project that takes nothing":      {limit: "cpu 8, pods 20", shares: []string{"shop: cpu 12", "blog: > cpu 0, pods 5"}, used: "cpu 12, pods 5", over: "cpu 4", grows: "blog"},
		"nothing at all":                            {limit: "cpu 0", shares: []string{"shop: > cpu 0", "blog: > cpu 1m"}, refused: "blog", used: "cpu 0"},
		"what the budget does not name":             {limit: "cpu 8", shares: []string{"shop: cpu 4, pods 1 > cpu 4, pods 100"}, used: "cpu 4"},
		"previews last":                             {limit: "cpu 8", shares: []string{"a-pr-1: > cpu 4", "b: > cpu 6"}, refused: "a-pr-1", used: "cpu 6", grows: "b"},
		"a preview that is there stays":             {limit: "cpu 8", shares: []string{"a-pr-1: cpu 4", "b: > cpu 6"}, refused: "b", used: "cpu 4"},
		"memory":                                    {limit: "memory 8Gi", shares: []string{"a: memory 4Gi", "b: > memory 4096Mi", "c: > memory 1"}, refused: "c", used: "memory 8Gi", grows: "b"},
		"a shrink of what the budget does not name": {limit: "cpu 8", shares: []string{"shop: cpu 4, pods 9 > cpu 4, pods 1"}, used: "cpu 4"},
		"what nobody has yet":                       {limit: "cpu 8, memory 8Gi", shares: []string{"shop: cpu 4"}, used: "cpu 4, memory 0"},
		"a sum beyond 64 bits, over the limit":      {limit: "cpu 1", shares: []string{"a: cpu 9223372036854775807", "b: cpu 9223372036854775807", "c: > cpu 1"}, refused: "c", used: "cpu 18446744073709551614", over: "cpu 18446744073709551613"},
		"amounts beyond 64 bits":                    {limit: "cpu 9E", shares: []string{"a: cpu 8E", "b: > cpu 8E", "c: > cpu 1E"}, refused: "b", used: "cpu 9E", grows: "c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := Budget{Tenant: "acme", Limit: amounts(tt.limit)}
			for _, text := range tt.shares {
				b.Shares = append(b.Shares, share(text))
			}
			for range 5 {
				rand.Shuffle(len(b.Shares), func(i, j int) { b.Shares[i], b.Shares[j] = b.Shares[j], b.Shares[i] })
				a := b.Fit()
				got := map[string]string{"used": written(a.Used), "over": written(a.Over)}
				got["refused"] = strings.Join(slices.Sorted(maps.Keys(a.Refused)), " ")
				got["grows"], got["shrinks"] = strings.Join(slices.Sorted(maps.Keys(a.Grows)), " "), strings.Join(slices.Sorted(maps.Keys(a.Shrinks)), " ")
				want := map[string]string{"refused": tt.refused, "used": tt.used, "over": tt.over, "grows": tt.grows, "shrinks": tt.shrinks}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestARefusalSaysWhatIsLeftAndWhoHasTheRest(t *testing.T) {
	b := Budget{Tenant: "acme", Limit: amounts("requests.cpu 20, pods 100, requests.memory 8Gi"), Shares: []Share{
		share("a: requests.cpu 4, pods 10"), share("b: requests.cpu 6, pods 10"), share("c: requests.cpu 4"), share("d: requests.cpu 1"), share("e: requests.cpu 1"),
		share("new: > requests.cpu 8, pods 90, requests.memory 8Gi"), share("shop: requests.cpu 2, requests.memory 1Gi > requests.cpu 5, requests.memory 9Gi"),
	}}
	b.Shares[1].Leaving = true
	b.Shares[5].Requested = amounts("requests.cpu 8")
	refused := b.Fit().Refused
	for project, want := range map[string]string{
		"new": "the quota of project new does not fit into the budget of tenant acme: pods 90 (the default), with 80 of 100 left (the others have 20: a 10, b 10 until it is gone); " +
			"requests.cpu 8, with 2 of 20 left (the others have 18: b 6 until it is gone, a 4, c 4, and 3 more); " +
			"requests.memory 8Gi (the default), with 7Gi of 8Gi left (the others have 1Gi: shop 1Gi); " +
			"ask for at most what is left in spec.quota of project.yaml, shrink another project, or ask an administrator of the cluster for more with " +
			"spec.budget of the Tenant, in tenant.yaml of the platform repository",
		"shop": "the quota of project shop does not fit into the budget of tenant acme: requests.cpu 5, with 4 of 20 left (the others have 16: b 6 until it is gone, a 4, c 4, and 2 more); " +
			"requests.memory 9Gi, with 8Gi of 8Gi left; " +
			"ask for at most what is left in spec.quota of project.yaml, shrink another project, or ask an administrator of the cluster for more with " +
			"spec.budget of the Tenant, in tenant.yaml of the platform repository",
	} {
		if refused[project] == nil {
			t.Fatalf("%s is not refused", project)
		}
		if diff := cmp.Diff(want, refused[project].Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", project, diff)
		}
	}
	if fresh, shop := refused["new"].Field(), refused["shop"].Field(); fresh != "spec.quota.requests.cpu" || shop != "spec.quota.requests.cpu" {
		t.Errorf("the fields are %s and %s", fresh, shop)
	}
	over := (Budget{Tenant: "acme", Limit: amounts("pods 5"), Shares: []Share{share("a: pods 9"), {Project: "b", Wants: amounts("pods 50")}}}).Fit().Refused["b"]
	if want := "the quota of project b does not fit into the budget of tenant acme: pods 50 (the default), with nothing of 5 left (the others have 9: a 9); ask for at most what is left in spec.quota of project.yaml, shrink another project, or ask an administrator of the cluster for more with spec.budget of the Tenant, in tenant.yaml of the platform repository"; over == nil || over.Error() != want || over.Field() != "spec.quota" {
		t.Errorf("got %v, want %q", over, want)
	}
}

func TestAQuotaAboveThatOfAPolicyIsRefusedWithTheWordsOfThePolicy(t *testing.T) {
	above := share("b: cpu 1 > cpu 20")
	four := resource.MustParse("4")
	above.Excess = &quota.Excess{Beyond: []quota.Beyond{{Name: "cpu", Wants: resource.MustParse("20"), Allowed: &four, Policy: "standard"}}}
	a := Budget{Tenant: "acme", Limit: amounts("cpu 30"), Shares: []Share{share("c: > cpu 50"), above, share("a: > cpu 29")}}.Fit()
	if got := written(a.Used); got != "cpu 30" {
		t.Errorf("%s is used, want cpu 30: what b has, and what a gets", got)
	}
	if refused := a.Refused["b"]; refused == nil || refused.Tenant != "acme" || refused.Project != "b" || refused.Error() != above.Excess.Error() || refused.Field() != above.Excess.Field() || refused.Field() != "spec.quota.cpu" {
		t.Errorf("b is refused with %v, want %s", refused, above.Excess)
	}
	if want := above.Excess.Error() + "\n" + a.Refused["c"].Error(); a.Refusals() != want {
		t.Errorf("the refusals are %q, want %q", a.Refusals(), want)
	}
	if diff := cmp.Diff(map[string]bool{"a": true}, a.Grows); diff != "" {
		t.Errorf("grows (-want +got):\n%s", diff)
	}
}

func TestARefusalNamesOthersWithWhatTheyHaveAfterTheCommit(t *testing.T) {
	for name, tt := range map[string]struct {
		limit  string
		shares []string
		of     string
		want   string
	}{
		"one that shrinks, and one that has nothing": {"cpu 8", []string{"a: cpu 6 > cpu 2", "b: cpu 0", "new: > cpu 7"}, "new", "cpu 7, with 6 of 8 left (the others have 2: a 2)"},
		"of equal amounts the first by name":         {"cpu 8", []string{"d: cpu 2", "c: cpu 2", "b: cpu 2", "a: cpu 2", "new: > cpu 1"}, "new", "cpu 1, with nothing of 8 left (the others have 8: a 2, b 2, c 2, and 1 more)"},
		"exactly nothing is left":                    {"cpu 8", []string{"a: cpu 8", "new: > cpu 1"}, "new", "cpu 1, with nothing of 8 left (the others have 8: a 8)"},
		"one that would fit now that others gave": {
			"p 8, q 8, r 8, s 8, t 8, u 8",
			[]string{"a: p 8 > q 8", "b: q 8 > r 8", "c: r 8 > s 8", "d: s 8 > t 8", "e: t 8 > u 8", "f: > u 9"}, "b", "r 8, with 8 of 8 left",
		},
	} {
		b := Budget{Tenant: "acme", Limit: amounts(tt.limit)}
		for _, text := range tt.shares {
			b.Shares = append(b.Shares, share(text))
		}
		refused := b.Fit().Refused[tt.of]
		if refused == nil || len(refused.Lacks) != 1 || refused.Lacks[0].String() != tt.want {
			t.Errorf("%s: got %v, want %s", name, refused, tt.want)
		}
	}
}

// TestNoCommitExceedsTheBudget has random commits: whatever they want, no sum grows beyond the budget, and nothing is refused that fits.
func TestNoCommitExceedsTheBudget(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		some := func() corev1.ResourceList {
			return amounts(fmt.Sprintf("cpu %d, pods %d, memory %dGi", random.IntN(9), random.IntN(9), random.IntN(9)))
		}
		b := Budget{Tenant: "acme", Limit: amounts(fmt.Sprintf("cpu %d, pods %d, memory %dGi", random.IntN(30), random.IntN(30), random.IntN(30)))}
		before := tally{}
		for i := range 1 + random.IntN(8) {
			s := Share{Project: fmt.Sprint("p", i)}
			if random.IntN(4) > 0 {
				s.Has = some()
			}
			if s.Has == nil || random.IntN(3) > 0 {
				s.Wants = some()
			}
			before.add(s.Has, 1)
			b.Shares = append(b.Shares, s)
		}
		a := b.Fit()
		after := tally{}
		for i := range b.Shares {
			s := &b.Shares[i]
			if a.Refused[s.Project] != nil {
				after.add(s.Has, 1)
				continue
			}
			after.add(s.after(), 1)
		}
		for name, limit := range b.Limit {
			is, was, used := after[name], before[name], a.Used[name]
			if is.Cmp(used) != 0 {
				t.Fatalf("seed %d: of %s %s is used, and %s is said", seed, name, is.String(), used.String())
			}
			if is.Cmp(limit) > 0 && is.Cmp(was) > 0 {
				t.Errorf("seed %d: %s is %s of %s, and was %s", seed, name, is.String(), limit.String(), was.String())
			}
		}
		for project, over := range a.Refused {
			for _, l := range over.Lacks {
				sum := l.Others.DeepCopy()
				if sum.Add(l.Wants); sum.Cmp(l.Limit) <= 0 {
					t.Errorf("seed %d: %s is refused, and fits: %s", seed, project, l)
				}
			}
		}
	}
}

func TestThousandProjectsAreDecidedQuickly(t *testing.T) {
	b := Budget{Tenant: "acme", Limit: amounts("cpu 4k, pods 50k, memory 8Ti, requests.storage 20Ti")}
	for i := range 1000 {
		s := Share{Project: fmt.Sprintf("p%d", i), Has: amounts("cpu 4, pods 50, memory 8Gi, requests.storage 20Gi")}
		if i%2 == 0 {
			s.Wants = amounts("cpu 8, pods 50, memory 8Gi, requests.storage 10Gi")
		}
		b.Shares = append(b.Shares, s)
	}
	began := time.Now()
	a := b.Fit()
	if took := time.Since(began); took > 10*time.Second || len(a.Refused) != 500 {
		t.Errorf("%d are refused, after %s", len(a.Refused), took)
	}
	t.Logf("1,000 projects: %s", time.Since(began))
}
