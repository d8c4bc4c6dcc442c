package cause

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestAnErrorIsOfTheInputOrOfTheEnvironment(t *testing.T) {
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
		"objects being deleted":                  {&fault.Terminating{Objects: []string{"Job/a"}}, true},
		"superseded":                             {fault.ErrSuperseded, true},
		"wrapped twice":                          {fmt.Errorf("a: %w", fmt.Errorf("b: %w", timeout)), true},
		"joined, both the environment's":         {fault.Join(timeout, refused), true},
		"joined, one is the input's":             {fault.Join(timeout, invalid), false},
		"joined with text":                       {errors.Join(errors.New("failed post-install: slow"), timeout), true},
		"a rendering error that wraps a timeout": {fault.Render(timeout), false},
		"a refusal that wraps a timeout":         {&fault.NotAllowed{Err: timeout}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsEnvironment(test.err); got != test.want {
				t.Errorf("IsEnvironment is %v for %v, want %v", got, test.err, test.want)
			}
		})
	}
}
