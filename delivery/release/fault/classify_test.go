package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/denial"
)

func TestIsEnvironment(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	kind := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	forbidden := func(why string) error { return apierrors.NewForbidden(pods, "web", errors.New(why)) }
	ending := apierrors.NewForbidden(pods, "web", errors.New("namespace team is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	answer := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}}
	}
	invalid := apierrors.NewInvalid(kind, "web", nil)
	judgedError := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: Images: no"}}
	unjudgedError := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: " +
		"failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"}}
	timeout := apierrors.NewTimeoutError("slow", 1)
	refused := &url.Error{Op: "Post", URL: "https://api", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no error":                               {nil, false},
		"text only":                              {errors.New("no"), false},
		"timeout":                                {timeout, true},
		"server timeout":                         {apierrors.NewServerTimeout(pods, "list", 1), true},
		"too many requests":                      {apierrors.NewTooManyRequests("slow down", 1), true},
		"webhook down":                           {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"service unavailable":                    {apierrors.NewServiceUnavailable("starting"), true},
		"conflict":                               {apierrors.NewConflict(pods, "web", errors.New("changed")), true},
		"a proxy's 502":                          {apierrors.NewGenericServerResponse(502, "GET", pods, "web", "", 0, true), true},
		"500 without a reason":                   {answer(500, ""), true},
		"429 without a reason":                   {answer(429, ""), true},
		"499 without a reason":                   {answer(499, ""), false},
		"430 without a reason":                   {answer(430, ""), false},
		"not allowed, without details":           {answer(403, metav1.StatusReasonForbidden), false},
		"quota":                                  {forbidden("exceeded quota: small, requested: pods=2, used: pods=1, limited: pods=1"), true},
		"quota not counted yet":                  {forbidden("status unknown for quota: small, resources: pods"), true},
		"namespace terminating":                  {ending, true},
		"not allowed":                            {forbidden("User cannot create pods"), false},
		"a policy":                               {forbidden("ValidatingAdmissionPolicy 'images' denied request"), false},
		"invalid":                                {invalid, false},
		"not judged by a policy":                 {unjudgedError, true},
		"judged by a policy":                     {judgedError, false},
		"bad request":                            {apierrors.NewBadRequest("strict decoding error"), false},
		"already exists":                         {apierrors.NewAlreadyExists(pods, "web"), false},
		"deleted between two requests":           {apierrors.NewNotFound(pods, "web"), true},
		"refused connection":                     {refused, true},
		"reset connection":                       {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		"unknown host":                           {&net.DNSError{Err: "no such host"}, true},
		"truncated answer":                       {io.ErrUnexpectedEOF, true},
		"deadline of a request":                  {context.DeadlineExceeded, true},
		"kind not served":                        {&meta.NoKindMatchError{GroupKind: kind}, true},
		"resource not served":                    {&meta.NoResourceMatchError{}, true},
		"objects being deleted":                  {&Terminating{Objects: []string{"Job/a"}}, true},
		"superseded":                             {ErrSuperseded, true},
		"wrapped twice":                          {fmt.Errorf("a: %w", fmt.Errorf("b: %w", timeout)), true},
		"joined, both the environment's":         {Join(timeout, refused), true},
		"joined, one is the input's":             {Join(timeout, invalid), false},
		"joined with text":                       {errors.Join(errors.New("failed post-install: slow"), timeout), true},
		"a rendering error that wraps a timeout": {Render(timeout), false},
		"a refusal that wraps a timeout":         {&NotAllowed{Err: timeout}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsEnvironment(test.err); got != test.want {
				t.Errorf("IsEnvironment is %v for %v, want %v", got, test.err, test.want)
			}
		})
	}
}

func TestFaultsKeepTheirTypes(t *testing.T) {
	var f Faults
	if err := f.All(); err != nil {
		t.Errorf("All returns an error before Note: %v", err)
	}
	cause := apierrors.NewServiceUnavailable("starting")
	if err := f.Note(fmt.Errorf("Service/web: %w", cause)); !errors.Is(err, cause) {
		t.Errorf("Note returns %v", err)
	}
	if !IsEnvironment(errors.Join(errors.New("failed post-install"), f.All())) {
		t.Error("All lost the type of the noted error")
	}
}

// answers is a server that answers with a status code, or with an error.
type answers struct {
	code int
	err  error
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: http.NoBody}, nil
}

func TestAWitnessRecordsLookupsThatTheEnvironmentFailed(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		from answers
		want bool
	}{
		"found": {answers{code: 200}, false}, "not found": {answers{code: 404}, false}, "forbidden": {answers{code: 403}, false}, "almost": {answers{code: 499}, false},
		"too many requests": {answers{code: 429}, true}, "a failure": {answers{code: 500}, true}, "a proxy's": {answers{code: 503}, true}, "no answer": {answers{err: away}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var f Faults
			request, err := http.NewRequest(http.MethodGet, "https://api/apis/apps/v1/deployments", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Witness(c.from).RoundTrip(request)
			if !errors.Is(err, c.from.err) || err == nil && got.StatusCode != c.from.code {
				t.Errorf("the caller gets %v, %v", got, err)
			}
			noted := f.All()
			if (noted != nil) != c.want || c.want && !IsEnvironment(noted) || c.from.err != nil && !strings.Contains(noted.Error(), "looking up /apis/apps/v1/deployments: ") {
				t.Errorf("noted %v", noted)
			}
		})
	}
}

func TestAKnownErrorOfATemplateSaysWhatToDo(t *testing.T) {
	for text, want := range map[string]string{
		"template: a.yaml:3:7: nil pointer evaluating interface {}.b":                          "a.yaml:3:7: nil pointer evaluating interface {}.b; set the value above it in spec.helm.values",
		"values don't meet the specifications of the schema(s) in the following chart(s): web": "web; values.schema.json of the chart says so: correct these values",
	} {
		if got := Readable(errors.New(text)).Error(); !strings.Contains(got, want) || strings.Count(got, ";") != 1 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestMessagesAreThoseOfPackageDenial, which has them from a real API server.
func TestMessagesAreThoseOfPackageDenial(t *testing.T) {
	for message, c := range map[string]struct {
		reason metav1.StatusReason
		knows  func(error) bool
	}{
		unjudged:  {metav1.StatusReasonInvalid, denial.Unjudged},
		overQuota: {metav1.StatusReasonForbidden, denial.ByQuota},
		uncounted: {metav1.StatusReasonForbidden, denial.ByNewQuota},
	} {
		answer := func(text string) error {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: c.reason, Message: text}}
		}
		if !c.knows(answer(message)) || c.knows(answer(message[:len(message)-1])) || c.knows(answer(message[1:])) {
			t.Errorf("package denial looks for another message than %q", message)
		}
		if !IsEnvironment(answer(message)) || IsEnvironment(answer("no")) {
			t.Errorf("%q is not of the environment", message)
		}
	}
}
