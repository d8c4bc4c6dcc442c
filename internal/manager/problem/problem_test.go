package problem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/go-cmp/cmp"
)

// TestEveryCodeIsExplained compares the codes and their statuses with the rows of docs/errors.md.
func TestEveryCodeIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Answers of the management API\n")
	explained := map[Code]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]{3}) \\| `([a-z-]+)` \\| .{20,} \\| .{10,} \\|$").FindAllStringSubmatch(section, -1) {
		explained[Code(row[2])], _ = strconv.Atoi(row[1])
	}
	if diff := cmp.Diff(Codes(), explained); diff != "" {
		t.Errorf("codes, and the rows of docs/errors.md (-code +row):\n%s", diff)
	}
}

func TestEachStatusHasOneCode(t *testing.T) {
	statuses := map[int]bool{}
	for status := range maps.Values(Codes()) {
		statuses[status] = true
	}
	if len(statuses) != len(byStatus) || len(byStatus) != len(Codes()) {
		t.Errorf("%d codes of %d statuses: what huma refuses would have any code of its status", len(Codes()), len(statuses))
	}
}

// TestTheErrorOfAProblemHasItsCodeAndDetail, which logs show.
func TestTheErrorOfAProblemHasItsCodeAndDetail(t *testing.T) {
	if got, want := New(NotFound, "There is no app web.").Error(), "not-found: There is no app web."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoProblemRepeatsAValue tries each format that huma knows, values of another type, unknown fields, and bodies that are no JSON.
func TestNoProblemRepeatsAValue(t *testing.T) {
	type body struct {
		URI       string   `json:"uri,omitempty" format:"uri"`
		Template  string   `json:"template,omitempty" format:"uri-template"`
		Regex     string   `json:"regex,omitempty" format:"regex"`
		Email     string   `json:"email,omitempty" format:"email"`
		UUID      string   `json:"uuid,omitempty" format:"uuid"`
		Duration  string   `json:"duration,omitempty" format:"duration"`
		Time      string   `json:"time,omitempty" format:"date-time"`
		IP        string   `json:"ip,omitempty" format:"ip"`
		Pattern   string   `json:"pattern,omitempty" pattern:"^[0-9]$"`
		One       string   `json:"one,omitempty" enum:"a,b"`
		Number    int      `json:"number,omitempty" maximum:"5"`
		Unsigned  uint8    `json:"unsigned,omitempty"`
		Addresses []string `json:"addresses,omitempty" maxItems:"1"`
	}
	mux, config := http.NewServeMux(), huma.DefaultConfig("", "")
	config.Formats, config.CreateHooks, config.RejectUnknownQueryParameters = map[string]huma.Format{"application/json": JSON, "json": JSON}, nil, true
	huma.Post(humago.New(mux, config), "/", func(context.Context, *struct {
		Address netip.Addr `query:"address"`
		Number  int        `query:"number"`
		Body    body
	}) (*struct{}, error) {
		return nil, nil
	})
	const secret = "hunter2"
	refused := 0
	try := func(target, body string) {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest("POST", target, strings.NewReader(body)))
		if answer.Code != http.StatusNoContent {
			refused++
		}
		if text := answer.Body.String(); answer.Code/100 == 5 || strings.Contains(text, secret) || strings.Contains(text, "EXTRA") || len(text) > 40_000 {
			t.Errorf("%s %.80s: %d %.500s", target, body, answer.Code, text)
		}
	}
	for _, field := range slices.Collect(maps.Keys(huma.SchemaFromType(huma.NewMapRegistry("", huma.DefaultSchemaNamer), reflect.TypeFor[body]()).Properties)) {
		for _, value := range []string{`"http://` + secret + `:%zz"`, `"(` + secret + `"`, `"` + secret + ` <"`, `["` + secret + `","x"]`, `{"` + secret + `":1}`, `12345678901234567890123`} {
			try("/", `{"`+field+`":`+value+`}`)
		}
	}
	for _, whole := range []string{secret, `{"uri":"x" ` + secret + `}`, `"` + secret + `"`, `{"unsigned": 300}`, `{"number": 1e999}`} {
		try("/", whole)
	}
	var many strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&many, `,"%d%s":1`, i, strings.Repeat("ä", 300))
	}
	try("/", "{"+many.String()[1:]+"}")
	try("/?address="+secret, "{}")
	try("/?number="+secret, "{}")
	try("/?unknown="+secret, "{}")
	if refused < 75 {
		t.Errorf("only %d were refused", refused)
	}
}

func TestRefusalsOfHumaAreProblems(t *testing.T) {
	got := huma.NewError(http.StatusUnprocessableEntity, "validation failed", &huma.ErrorDetail{Message: "expected string", Location: "body.name", Value: "hunter2"})
	want := New(Invalid, "validation failed", Fault{Location: "body.name", Message: "expected string"})
	if diff := cmp.Diff(huma.StatusError(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := huma.NewError(http.StatusTeapot, "?"); got.GetStatus() != http.StatusBadRequest {
		t.Errorf("a status without a code becomes %v", got)
	}
	late := huma.NewError(http.StatusInternalServerError, "unexpected", fmt.Errorf("listing: %w", context.DeadlineExceeded))
	if p, is := late.(*Problem); !is || p.Code != TookTooLong {
		t.Errorf("an operation that took too long becomes %v", late)
	}
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway} {
		if diff := cmp.Diff(huma.StatusError(New(Internal, "")), huma.NewError(status, "unexpected", errors.New("dial 10.0.0.1: secret"))); diff != "" {
			t.Errorf("%d gives the caller what is for the log (-want +got):\n%s", status, diff)
		}
	}
}

// TestABodyOfManyValuesIsRefused before they are in memory, and characters in texts are none.
func TestABodyOfManyValuesIsRefused(t *testing.T) {
	var into any
	for text, refused := range map[string]bool{
		"[" + strings.Repeat("{},", maxValues) + "0]":                                true,
		`["` + strings.Repeat(`,[{\"`, maxValues) + `"]`:                             false,
		"[" + strings.Repeat("0,", maxValues-2) + "0]":                               false,
		`{"a":"` + strings.Repeat("\\\\", 3) + `",` + strings.Repeat(`,`, maxValues): true,
	} {
		if err := JSON.Unmarshal([]byte(text), &into); (err != nil && strings.Contains(err.Error(), "more than 100000 values")) != refused {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}
