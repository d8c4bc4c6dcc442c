package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
)

// parts are the fields that an invoice and a draft share.
const parts = `"tenant": "acme", "month": "2026-10", "currency": "EUR", "priceList": "standard", "revision": "main@sha1:1", "author": "ann", "net": "3.64", "total": "4.33",
	"lines": [{"meter": "cpu.requested", "unit": "core-hour", "period": 0, "tier": 0, "price": "0", "quantity": "10", "amount": "0.00", "hours": []},
		{"meter": "cpu.requested", "unit": "core-hour", "period": 0, "tier": 1, "price": "1.01", "quantity": "4", "amount": "4.04", "hours": []}],
	"discounts": [{"percent": "10", "base": "4.04", "amount": "-0.40"}], "taxes": [{"name": "VAT", "percent": "19", "amount": "0.69"}],
	"unpriced": [{"meter": "gpu", "quantity": "5", "hours": 1, "from": "2026-10-31T23:00:00Z", "until": "2026-11-01T00:00:00Z"}],
	"gaps": [{"cluster": "local", "meters": ["pods"], "from": "2026-10-31T22:00:00Z", "until": "2026-10-31T23:00:00Z", "minutes": 60}, {"cluster": "local", "meters": ["objects"], "from": "2026-10-31T22:00:00Z", "until": "2026-10-31T23:00:00Z", "minutes": 7}],
	"apps": [{"project": "shop", "app": "db", "amount": "1.01"}, {"project": "shop", "app": "web", "amount": "3.03"}]`

func summary(number, credits int, tenant, total string) string {
	kind := map[bool]string{true: "invoice", false: "credit-note"}[credits == 0]
	return fmt.Sprintf(`{"number": %d, "kind": %q, "tenant": %q, "month": "2026-10", "currency": "EUR", "net": "0", "total": %q, "closed": "2026-11-02T10:00:00Z", "credits": %d}`, number, kind, tenant, total, credits)
}

// run runs the command with a manager that answers a list, and the invoice 3. It returns what was written and what was asked.
func run(t *testing.T, list string, args ...string) (out string, asked []string, err error) {
	t.Helper()
	return runCommand(t, Command, list, args...)
}

// runCommand is run for a command of this package.
func runCommand(t *testing.T, of func(*call.Call) *cobra.Command, list string, args ...string) (out string, asked []string, err error) {
	t.Helper()
	answer := func(w http.ResponseWriter, text string) {
		if !json.Valid([]byte(text)) {
			t.Errorf("the test answers %s", text)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		switch r.URL.Path {
		case "/v1/invoices", "/v1/usage":
			answer(w, list)
		case "/v1/invoices/3":
			answer(w, `{"number": 3, "kind": "invoice", "closed": "2026-11-01T10:00:00Z", "closedBy": "root", `+parts+`}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer manager.Close()
	t.Setenv("KUBEOP_TOKEN", "kubeop_x")
	var written bytes.Buffer
	c := call.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &written, ErrOut: io.Discard}, clocktesting.NewFakeClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)))
	command := of(c)
	c.AddFlags(command.Flags())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append(args, "--server", manager.URL))
	err = command.ExecuteContext(t.Context())
	return written.String(), asked, err
}

// words has each line with one space between its cells.
func words(text string) (all []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all = append(all, strings.Join(fields, " "))
		}
	}
	return all
}

func TestADraftIsShownWithItsForecast(t *testing.T) {
	out, asked, err := run(t, `{"items": [], "draft": {"computed": "2026-11-29T12:00:00Z", "forecast": {"net": "872.64", "total": "1038.44"}, `+parts+`}}`, "--tenant", "acme")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"acme has used in 2026-10, which is not closed", "METER TIER QUANTITY UNIT PRICE EUR", "cpu.requested free 10 core-hour 0 0.00", "cpu.requested 1 4 core-hour 1.01 4.04", "discount 10 % -0.40", "net 3.64", "VAT 19 % 0.69", "total 4.33",
		"Usage without a price, which is on no line", "gpu 5", "Not measured", "Of some meters 67 minutes were not measured together. Nothing is charged for them.", "Forecast, if usage goes on as in the last day", "net 872.64", "total 1038.44",
	}, words(out)); diff != "" {
		t.Errorf("-want +shown:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/v1/invoices?limit=500&month=2026-11&tenant=acme"}, asked); diff != "" {
		t.Errorf("-want +asked:\n%s", diff)
	}
}

func TestTheNewestInvoiceOfAMonthIsShownByApp(t *testing.T) {
	list := `{"items": [` + summary(4, 3, "acme", "-1.19") + "," + summary(3, 0, "acme", "4.33") + "," + summary(2, 1, "acme", "-9") + "," + summary(1, 0, "acme", "9") + `]}`
	out, asked, err := run(t, list, "--tenant", "acme", "--month", "2026-10", "--by", "app")
	if err != nil {
		t.Fatal(err)
	}
	shown := words(out)
	if diff := cmp.Diff([]string{"Invoice 3 of acme for 2026-10", "PROJECT APP EUR", "shop db 1.01", "shop web 3.03", "All apps, with discounts and taxes", "discount 10 % -0.40", "net 3.64", "VAT 19 % 0.69", "total 4.33"}, shown[:9]); diff != "" {
		t.Errorf("-want +shown:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Credit notes about it", "4 2026-11-02 -1.19"}, shown[len(shown)-2:]); diff != "" {
		t.Errorf("-want +shown:\n%s", diff)
	}
	if len(asked) != 2 || asked[0] != "/v1/invoices?limit=500&month=2026-10&tenant=acme" || asked[1] != "/v1/invoices/3" {
		t.Errorf("asked are %q", asked)
	}
}

func TestAnErrorSaysWhyNoCostIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		list string
		args []string
		want string
	}{
		"no prices":       {`{"items": [], "noDraft": "The tenant names no price list."}`, []string{"--tenant", "acme"}, "The tenant names no price list."},
		"no tenant":       {`{"items": []}`, nil, "--tenant"},
		"several tenants": {`{"items": [` + summary(3, 0, "acme", "1") + "," + summary(2, 0, "beta", "1") + `]}`, nil, "--tenant"},
		// Of several tenants, it may be the only one that has closed the month.
		"one of several": {`{"items": [` + summary(3, 0, "acme", "1") + `]}`, nil, "--tenant"},
		"another sum":    {`{"items": []}`, []string{"--by", "day"}, "--by"},
		"a project":      {`{"items": []}`, []string{"--project", "shop"}, "--project"},
	} {
		if out, _, err := run(t, c.list, c.args...); err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}
