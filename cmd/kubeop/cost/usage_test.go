package cost

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const used = `{"items": [
	{"tenant": "acme", "project": "shop", "app": "web", "cluster": "local", "from": "2026-11-01T00:00:00Z", "until": "2026-11-02T00:00:00Z", "meters": [
		{"name": "cpu.requested", "unit": "core-seconds", "amount": "43177.5", "missing": 3}, {"name": "pods", "unit": "seconds", "amount": "172710"}]},
	{"tenant": "acme", "project": "shop", "app": "", "cluster": "local", "from": "2026-11-01T00:00:00Z", "until": "2026-11-02T00:00:00Z", "meters": [{"name": "storage", "unit": "byte-seconds", "amount": "7"}]}]}`

func TestUsageIsShownByAppAndMeter(t *testing.T) {
	out, asked, err := runCommand(t, Usage, used, "--tenant", "acme", "--project", "shop", "--app", "web", "--from", "2026-11-01", "--until", "2026-11-02T00:00:00Z", "--step", "day")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"FROM OF METER AMOUNT UNIT MISSING", "2026-11-01 acme/shop/web cpu.requested 43177.5 core-seconds 3", "2026-11-01 acme/shop/web pods 172710 seconds", "2026-11-01 acme/shop storage 7 byte-seconds",
	}
	if diff := cmp.Diff(want, words(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := []string{"/v1/usage?app=web&from=2026-11-01T00%3A00%3A00Z&limit=500&project=shop&step=day&tenant=acme&until=2026-11-02T00%3A00%3A00Z"}; cmp.Diff(want, asked) != "" {
		t.Errorf("it asked for %q", asked)
	}
	if out, _, err = runCommand(t, Usage, used, "-o", "json"); err != nil || !strings.Contains(out, `"amount": "43177.5"`) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestATimeThatIsNoneAsksNothing(t *testing.T) {
	for _, flag := range []string{"--from", "--until"} {
		_, asked, err := runCommand(t, Usage, used, flag, "yesterday")
		if err == nil || !strings.Contains(err.Error(), flag+`: "yesterday" is no time`) || len(asked) > 0 {
			t.Errorf("%s: %v, and it asked for %q", flag, err, asked)
		}
	}
}
