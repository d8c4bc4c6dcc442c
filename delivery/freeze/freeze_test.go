package freeze

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func windowOf(name, start, duration, zone string) v1alpha1.FreezeWindow {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	return v1alpha1.FreezeWindow{Name: name, Start: start, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

// TestAWindowIsInForce from its start to its end, in its time zone.
func TestAWindowIsInForce(t *testing.T) {
	const berlin = "Europe/Berlin"
	weekend := windowOf("weekend", "0 18 * * FRI", "62h", berlin)
	monthEnd := windowOf("month-end", "0 0 31 * *", "24h", "")
	for name, tc := range map[string]struct {
		window v1alpha1.FreezeWindow
		at     string
		// until is "" if the window is not open.
		until string
	}{
		"before it":                   {weekend, "2026-11-27T16:59:59Z", ""},
		"at its start":                {weekend, "2026-11-27T17:00:00Z", "2026-11-30 08:00 CET (Europe/Berlin)"},
		"just before its end":         {weekend, "2026-11-30T06:59:59Z", "2026-11-30 08:00 CET (Europe/Berlin)"},
		"at its end":                  {weekend, "2026-11-30T07:00:00Z", ""},
		"in summer":                   {weekend, "2026-07-03T16:00:00Z", "2026-07-06 08:00 CEST (Europe/Berlin)"},
		"clocks go forward within it": {weekend, "2026-03-29T12:00:00Z", "2026-03-30 09:00 CEST (Europe/Berlin)"},
		"clocks go back within it":    {weekend, "2026-10-25T12:00:00Z", "2026-10-26 07:00 CET (Europe/Berlin)"},
		"a month with the day":        {monthEnd, "2026-12-31T12:00:00Z", "2027-01-01 00:00 UTC"},
		"a month without it":          {monthEnd, "2026-11-30T12:00:00Z", ""},
		"an end within a minute":      {windowOf("x", "0 9 * * *", "90s", ""), "2026-01-01T09:00:00Z", "2026-01-01 09:01:30 UTC"},
		"on the leap day":             {windowOf("leap", "0 0 29 2 *", "1h", ""), "2028-02-29T00:59:00Z", "2028-02-29 01:00 UTC"},
		"a zone of half hours":        {windowOf("x", "0 9 * * *", "1h", "Asia/Kolkata"), "2026-01-01T03:30:00Z", "2026-01-01 10:00 IST (Asia/Kolkata)"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			hold, err := InForce([]v1alpha1.FreezeWindow{tc.window}, at)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if hold != nil {
				got = strings.TrimSuffix(strings.TrimPrefix(hold.String(), "until "), " by freeze "+tc.window.Name)
			}
			if got != tc.until {
				t.Errorf("got %q, want %q", got, tc.until)
			}
		})
	}
}

// TestAStartWhileClocksChange is neither left out nor repeated: 02:30 does not exist in the night in March, and comes twice in that in October.
func TestAStartWhileClocksChange(t *testing.T) {
	for _, day := range []string{"2026-03-29", "2026-10-25"} {
		at, err := time.Parse(time.RFC3339, day+"T00:00:00Z")
		if err != nil {
			t.Fatal(err)
		}
		open := 0
		for m := range 4 * 60 {
			hold, err := InForce([]v1alpha1.FreezeWindow{windowOf("night", "30 2 * * *", "30m", "Europe/Berlin")}, at.Add(time.Duration(m)*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if hold != nil {
				open++
			}
		}
		if open != 30 {
			t.Errorf("%s: open for %d minutes, want 30", day, open)
		}
	}
}

func TestAWindowThatCannotBeReadIsNamed(t *testing.T) {
	hold, err := InForce([]v1alpha1.FreezeWindow{windowOf("broken", "0 25 * * *", "1h", "")}, time.Unix(0, 0))
	if err == nil || !strings.HasPrefix(err.Error(), "the freeze window broken of the tenant cannot be evaluated: start ") {
		t.Errorf("got %v, %v", hold, err)
	}
}

func TestTheHoldOfOverlappingWindowsEndsWithTheLast(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	release := windowOf("release", "0 14 * * *", "2h", "")
	release.Message = "freeze of release 7"
	windows := []v1alpha1.FreezeWindow{windowOf("lunch", "0 11 * * *", "3h", ""), windowOf("late", "0 10 * * *", "2h30m", ""), release, windowOf("night", "0 22 * * *", "1h", "")}
	hold, err := InForce(windows, noon)
	if err != nil || hold == nil {
		t.Fatalf("got %v, %v", hold, err)
	}
	if got, want := hold.String(), "until 2026-11-26 16:00 UTC by freeze lunch"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	hold, err = InForce(windows, noon.Add(3*time.Hour))
	if err != nil || hold.String() != `until 2026-11-26 16:00 UTC by freeze release ("freeze of release 7")` {
		t.Errorf("got %s, %v", hold, err)
	}
	if hold, err = InForce(nil, noon); hold != nil || err != nil {
		t.Errorf("without windows: got %s, %v", hold, err)
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		window v1alpha1.FreezeWindow
		// field and text of the fault; "" for none.
		field, text string
	}{
		"weekend":                     {windowOf("w", "0 18 * * FRI", "62h", "Europe/Berlin"), "", ""},
		"every minute of work":        {windowOf("w", "* 8-17 * * MON-FRI", "1m", ""), "", ""},
		"every minute of a month":     {windowOf("w", "* * 1-30 * *", "1m", ""), "duration", "never ends"},
		"no pause":                    {windowOf("w", "0 0 * * *", "24h", ""), "duration", "is 24h0m0s, and the window starts again before that is over"},
		"a pause at weekends":         {windowOf("w", "0 0 * * MON-FRI", "24h", ""), "", ""},
		"four fields":                 {windowOf("w", "0 18 * *", "1h", ""), "start", "expected exactly 5 fields"},
		"six fields":                  {windowOf("w", "0 0 18 * * FRI", "1h", ""), "start", "expected exactly 5 fields"},
		"hour 24":                     {windowOf("w", "0 24 * * *", "1h", ""), "start", "above maximum"},
		"a descriptor":                {windowOf("w", "@every 1h", "1h", ""), "start", "does not accept descriptors"},
		"a zone in start":             {windowOf("w", "TZ=UTC 0 0 * * *", "1h", ""), "start", "write it as timeZone"},
		"only a zone":                 {windowOf("w", "CRON_TZ=", "1h", ""), "start", "write it as timeZone"},
		"a large step":                {windowOf("w", "*/18446744073709551615 * * * *", "1h", ""), "start", "is not five fields"},
		"a day that no month has":     {windowOf("w", "0 0 31 2 *", "1h", ""), "start", "never occurs"},
		"unknown zone":                {windowOf("w", "0 0 * * *", "1h", "Europe/Bärlin"), "timeZone", "is not the name of a time zone"},
		"the zone of the machine":     {windowOf("w", "0 0 * * *", "1h", "local"), "timeZone", "is not the name of a time zone"},
		"a zone outside of the zones": {windowOf("w", "0 0 * * *", "1h", "../../etc/passwd"), "timeZone", "is not the name of a time zone"},
		"no duration":                 {windowOf("w", "0 0 * * *", "0s", ""), "duration", "longer than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var fault *Fault
			err := Check(&tc.window)
			if tc.field == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.As(err, &fault) || fault.Field != tc.field || !strings.Contains(fault.Why, tc.text) {
				t.Errorf("got %v, want %s: %q", err, tc.field, tc.text)
			}
		})
	}
}

// TestHostileWindowsAreBounded: windows that Check refuses end, too, within a limit of work.
func TestHostileWindowsAreBounded(t *testing.T) {
	var windows []v1alpha1.FreezeWindow
	for i := range 10_000 {
		windows = append(windows, windowOf(fmt.Sprint(i), "* * * * *", "876000h", "America/Nuuk"))
	}
	begin := time.Now()
	hold, err := InForce(windows, time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	if err != nil || hold == nil || hold.Name != "0" {
		t.Fatalf("got %v, %v", hold, err)
	}
	for _, start := range []string{"0 0 31 2 *", "0 0 29 2 *", "* * * * *", "59 23 31 12 SUN"} {
		for _, duration := range []string{"1m", "2160h", "876000h"} {
			w := windowOf("w", start, duration, "Pacific/Apia")
			if _, err := InForce([]v1alpha1.FreezeWindow{w}, begin); err != nil {
				t.Errorf("%s for %s: %v", start, duration, err)
			}
			_ = Check(&w)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func BenchmarkInForce(b *testing.B) {
	windows := []v1alpha1.FreezeWindow{windowOf("weekend", "0 18 * * FRI", "62h", "Europe/Berlin"), windowOf("leap", "0 0 29 2 *", "24h", "Asia/Tokyo")}
	for b.Loop() {
		if _, err := InForce(windows, time.Unix(1_790_000_000, 0)); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzCheck: no text panics, and a window that is valid can be evaluated.
func FuzzCheck(f *testing.F) {
	f.Add("0 18 * * FRI", "Europe/Berlin", int64(62*time.Hour))
	f.Add("CRON_TZ=", "", int64(time.Hour))
	f.Fuzz(func(t *testing.T, start, zone string, duration int64) {
		w := v1alpha1.FreezeWindow{Name: "w", Start: start, TimeZone: zone, Duration: metav1.Duration{Duration: time.Duration(duration)}}
		if Check(&w) != nil {
			return
		}
		if _, err := InForce([]v1alpha1.FreezeWindow{w}, time.Unix(1_790_000_000, 0)); err != nil {
			t.Errorf("the valid window cannot be evaluated: %v", err)
		}
	})
}

// TestATenantThatIsFrozenHasNoEnd, whatever its windows say, and the message says where that is written.
func TestATenantThatIsFrozenHasNoEnd(t *testing.T) {
	open, broken := windowOf("today", "0 0 27 * *", "24h", ""), windowOf("broken", "now", "1h", "")
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		frozen  bool
		windows []v1alpha1.FreezeWindow
		want    string
		failed  bool
	}{
		"neither":                      {},
		"a window":                     {windows: []v1alpha1.FreezeWindow{open}, want: "until 2026-11-28 00:00 UTC by freeze today"},
		"frozen":                       {frozen: true, want: "until an administrator of the cluster removes spec.frozen from tenants/acme/tenant.yaml of the platform repository in Git"},
		"frozen in a window":           {frozen: true, windows: []v1alpha1.FreezeWindow{open}, want: "until an administrator of the cluster removes spec.frozen"},
		"frozen, the windows unread":   {frozen: true, windows: []v1alpha1.FreezeWindow{broken}, want: "until an administrator of the cluster removes spec.frozen"},
		"only windows that are unread": {windows: []v1alpha1.FreezeWindow{broken}, failed: true},
	} {
		tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Frozen: tc.frozen, Freeze: tc.windows}}
		tenant.Annotations = map[string]string{v1alpha1.FolderAnnotation: "tenants/acme"}
		hold, err := Of(tenant, at)
		got := ""
		if hold != nil {
			got = hold.String()
		}
		if (err != nil) != tc.failed || hold.ByAdministrators() != tc.frozen || (tc.want == "") != (got == "") || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

// TestATenantThatIsStoppedHasItsOwnHold, besides that of a frozen one, and a Tenant without a folder is named by its file alone.
func TestATenantThatIsStoppedHasItsOwnHold(t *testing.T) {
	stopped := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Stopped: true}}
	if got, want := Stopped(stopped).String(), "until an administrator of the cluster removes spec.stopped from tenant.yaml of the platform repository in Git"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if hold := ByAdministrators(stopped); hold != nil {
		t.Errorf("a stopped tenant is frozen: %s", hold)
	}
	frozen := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Frozen: true}}
	if hold := Stopped(frozen); hold != nil {
		t.Errorf("a frozen tenant is stopped: %s", hold)
	}
	if hold := ByAdministrators(frozen); hold == nil || hold.Field != "spec.frozen" {
		t.Errorf("a frozen tenant has the hold %v", hold)
	}
}
