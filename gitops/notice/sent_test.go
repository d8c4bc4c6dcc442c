package notice

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	ready  = State{Delivery: "d1", Delivered: "v1", Since: noon}
	broken = State{Failed: true, Reason: "Unhealthy", Message: "no image", Since: noon, Delivery: "d1", Delivered: "v1"}
)

// recipient records what News says of each state in a row.
type recipient struct {
	Sent
	Filter
	now time.Time
}

func (e *recipient) receives(s States) (said []string) {
	n := e.News(s, e.Filter, e.now)
	for _, x := range n.Notices {
		text := x.App + " " + x.Reason
		if x.Resolved {
			text += " is over"
		}
		said = append(said, text)
	}
	if len(n.Notices) > 0 {
		e.Record(n, e.now)
	}
	return said
}

func TestReceiversGetTheChangesTheyAskedFor(t *testing.T) {
	second, unsettled := ready, broken
	second.Delivery, unsettled.Unsettled = "d2", true
	other := broken
	other.Reason = "RenderFailed"
	doubtful := other
	doubtful.Unsettled = true
	text := broken
	text.Message = "another text"
	web := func(s State) States { return States{"shop/web": s} }
	tests := map[string]struct {
		filter Filter
		before States
		// rows are the states one after the other, a minute apart, and said the notices about each.
		rows []States
		said [][]string
	}{
		"what was before is known":        {Filter{Severity: Info}, web(broken), []States{web(broken)}, [][]string{nil}},
		"a failure, once":                 {Filter{Severity: Info}, web(ready), []States{web(broken), web(text), web(broken)}, [][]string{{"shop/web Unhealthy"}, nil, nil}},
		"another reason":                  {Filter{Severity: Info}, web(broken), []States{web(other)}, [][]string{{"shop/web RenderFailed"}}},
		"a recovery":                      {Filter{Severity: Error}, web(broken), []States{web(ready), web(ready)}, [][]string{{"shop/web Recovered"}, nil}},
		"not settled":                     {Filter{Severity: Error}, web(ready), []States{web(unsettled), web(ready)}, [][]string{nil, nil}},
		"a delivery":                      {Filter{Severity: Info}, web(ready), []States{web(second)}, [][]string{{"shop/web Delivered"}}},
		"a delivery, errors only":         {Filter{Severity: Error}, web(ready), []States{web(second)}, [][]string{nil}},
		"a new app":                       {Filter{Severity: Info}, States{}, []States{web(ready)}, [][]string{{"shop/web Delivered"}}},
		"an app that left":                {Filter{Severity: Info}, web(broken), []States{{}, web(broken)}, [][]string{nil, nil}},
		"another app":                     {Filter{Severity: Info, Apps: []string{"shop/api"}}, web(ready), []States{web(broken)}, [][]string{nil}},
		"apps by a pattern":               {Filter{Severity: Info, Apps: []string{"*/w*"}}, web(ready), []States{web(broken)}, [][]string{{"shop/web Unhealthy"}}},
		"the repository":                  {Filter{Severity: Info}, States{"": ready}, []States{{"": broken}}, [][]string{{" Unhealthy"}}},
		"the repository, by a pattern":    {Filter{Severity: Info, Apps: []string{"*/*"}}, States{"": ready}, []States{{"": broken}}, [][]string{nil}},
		"alerts end":                      {Filter{Alerts: true}, web(ready), []States{web(broken), web(second)}, [][]string{{"shop/web Unhealthy"}, {"shop/web Unhealthy is over"}}},
		"alerts end with the app":         {Filter{Alerts: true}, web(ready), []States{web(broken), {}}, [][]string{{"shop/web Unhealthy"}, {"shop/web Unhealthy is over"}}},
		"an alert of an app that is back": {Filter{Alerts: true}, web(ready), []States{web(broken), {}, {}, web(broken)}, [][]string{{"shop/web Unhealthy"}, {"shop/web Unhealthy is over"}, nil, {"shop/web Unhealthy"}}},
		"a failed app that is back": {Filter{Severity: Info}, States{"shop/web": broken, "shop/api": ready}, []States{{"shop/api": broken}, {"shop/api": broken, "shop/web": broken}},
			[][]string{{"shop/api Unhealthy"}, {"shop/web Unhealthy"}}},
		"alerts are sent again":            {Filter{Alerts: true}, web(ready), []States{web(broken), web(broken), web(broken), web(broken), web(broken), web(broken)}, [][]string{{"shop/web Unhealthy"}, nil, nil, nil, nil, {"shop/web Unhealthy"}}},
		"alerts that go on are sent along": {Filter{Alerts: true}, web(ready), []States{web(broken), {"shop/web": broken, "shop/api": broken}}, [][]string{{"shop/web Unhealthy"}, {"shop/api Unhealthy", "shop/web Unhealthy"}}},
		"alerts are sorted behind the new ones": {Filter{Alerts: true}, States{}, []States{{"b/b": broken, "c/c": broken}, {"b/b": doubtful, "c/c": broken, "d/d": broken}},
			[][]string{{"b/b Unhealthy", "c/c Unhealthy"}, {"d/d Unhealthy", "b/b Unhealthy", "c/c Unhealthy"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := &recipient{Filter: tc.filter, now: noon}
			e.Begin(tc.before, true)
			for i, row := range tc.rows {
				if diff := cmp.Diff(tc.said[i], e.receives(row)); diff != "" {
					t.Errorf("row %d: %s", i, diff)
				}
				e.now = e.now.Add(time.Minute)
			}
		})
	}
}

// TestANewReceiverGetsPresentFailures, but no old deliveries.
func TestANewReceiverGetsPresentFailures(t *testing.T) {
	e := &recipient{Filter: Filter{Severity: Info}, now: noon}
	states := States{"shop/web": broken, "shop/api": ready}
	e.Begin(states, false)
	if got, want := e.receives(states), []string{"shop/web Unhealthy"}; !slices.Equal(got, want) {
		t.Errorf("it receives %q, want %q", got, want)
	}
}

// TestAnAppThatFlapsIsReportedRarely, and its last state is reported in the end.
func TestAnAppThatFlapsIsReportedRarely(t *testing.T) {
	e := &recipient{Filter: Filter{Severity: Error}, now: noon}
	said := 0
	for i := range 3600 {
		s := ready
		if i%2 == 0 {
			s = broken
		}
		said += len(e.receives(States{"shop/web": s}))
		e.now = e.now.Add(time.Second)
	}
	if said < changes*11 || said > changes*13 {
		t.Errorf("reported %d times in an hour, want about %d", said, changes*12)
	}
	e.now = e.now.Add(window)
	e.receives(States{"shop/web": ready})
	if e.states["shop/web"].Failed {
		t.Error("the last state is not reported")
	}
}

// TestAnUnsentNoticeStaysNews: a receiver that is down gets the newest state later.
func TestAnUnsentNoticeStaysNews(t *testing.T) {
	var sent Sent
	f := Filter{Severity: Error}
	for range 2 {
		if n := sent.News(States{"shop/web": broken}, f, noon); len(n.Notices) != 1 {
			t.Errorf("news are %+v", n.Notices)
		}
	}
	if n := sent.News(States{"shop/web": ready}, f, noon); len(n.Notices) != 0 {
		t.Errorf("it recovered before a notice was sent, and the notices are %+v", n.Notices)
	}
}

func TestOneRequestIsBounded(t *testing.T) {
	e := &recipient{Filter: Filter{Severity: Error}, now: noon}
	states := States{}
	for i := range 250 {
		states[fmt.Sprint("shop/", i)] = broken
	}
	if n := e.News(states, e.Filter, noon); n.Again == 0 {
		t.Error("nothing says that there is more")
	}
	var got []int
	for range 4 {
		got = append(got, len(e.receives(states)))
	}
	if want := []int{maxBatch, maxBatch, 50, 0}; !slices.Equal(got, want) {
		t.Errorf("sent are %v, want %v", got, want)
	}
}
