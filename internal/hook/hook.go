// Package hook serves POST /hook/<repository>, by which a Git host reports a push. The call only has the repository
// fetched at once; what is in it decides nothing, and polling finds the push without it. With ?source=<URL> it reports a push
// to another Git repository, from which apps of that tenant are made.
package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// maxBody bounds what a call may send; GitHub's largest push reports stay below it.
	maxBody = 25 << 20
	// maxCalls bounds how many calls are answered at once, and with them the look-ups of Secrets.
	maxCalls = 16
	// maxURL is the longest URL that an app may name.
	maxURL = 2048
)

// Server answers calls on every replica, the leader or not: it leaves its mark on the Repository, which the leader sees.
type Server struct {
	Client client.Client
	// Reader reads Secrets past the cache.
	Reader    client.Reader
	Namespace string
	Listener  net.Listener
	Clock     clock.PassiveClock
	Log       logr.Logger
}

// NeedLeaderElection lets every replica serve.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	}()
	if err := server.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving push hooks: %w", err)
	}
	return <-stopped
}

// Handler answers POST /hook/{repository}: 202 when the fetch was asked for; 400 when source is too long; 401 when the call is not signed with the
// repository's key or there is no such repository, which are not told apart; 413 when the body is past maxBody; 503
// when maxCalls are under way. A call that carries no signature is refused before anything of it is looked at.
func (s *Server) Handler() http.Handler {
	slots := make(chan struct{}, maxCalls)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook/{repository}", func(w http.ResponseWriter, r *http.Request) {
		given, ok := proofOf(r.Header)
		if !ok {
			http.Error(w, "the call carries no signature, or one that is malformed", http.StatusUnauthorized)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			s.push(w, r, given)
		default:
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many calls at once; polling will find the push", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// push reads the body in pieces and keeps none of it: all that is needed is its HMAC. It does so for a repository that is
// not there too: a body left unread would tell it from one that is.
func (s *Server) push(w http.ResponseWriter, r *http.Request, given proof) {
	name := r.PathValue("repository")
	if len(r.URL.Query().Get("source")) > maxURL {
		http.Error(w, fmt.Sprintf("source has more than %d characters", maxURL), http.StatusBadRequest)
		return
	}
	log := s.Log.WithValues("repository", name, "from", r.RemoteAddr)
	repository, key, missing := s.find(r.Context(), name)
	genuine, err := given.by(key, http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		unreadable(w, err)
		return
	}
	if missing != nil || !genuine {
		log.Info("Refusing a push hook", "reason", reason(missing))
		http.Error(w, "the call is not signed with this repository's key", http.StatusUnauthorized)
		return
	}
	if err := s.request(r.Context(), repository, r.URL.Query().Get("source")); err != nil {
		log.Error(err, "Asking for a fetch")
		http.Error(w, "asking for a fetch did not succeed; polling will find the push", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func unreadable(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, "reading the body: "+err.Error(), code)
}

func reason(err error) string {
	if err == nil {
		return "the signature is wrong"
	}
	return err.Error()
}

// find returns the repository and the key its calls are signed with.
func (s *Server) find(ctx context.Context, name string) (*v1alpha1.Repository, []byte, error) {
	repository := &v1alpha1.Repository{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, repository); err != nil {
		return nil, nil, err
	}
	ref := repository.Spec.HookSecretRef
	if ref == nil {
		return nil, nil, errors.New("the repository has no hookSecretRef")
	}
	secret := &corev1.Secret{}
	if err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, nil, err
	}
	if len(secret.Data["token"]) == 0 {
		return nil, nil, fmt.Errorf("secret %s/%s has no key token", s.Namespace, ref.Name)
	}
	return repository, secret.Data["token"], nil
}

// request leaves Flux's annotation, as `kubectl annotate` would, or the one that names the source.
func (s *Server) request(ctx context.Context, repository *v1alpha1.Repository, source string) error {
	before := repository.DeepCopy()
	if repository.Annotations == nil {
		repository.Annotations = map[string]string{}
	}
	now := s.Clock.Now().UTC().Format(time.RFC3339Nano)
	if source == "" {
		repository.Annotations[meta.ReconcileRequestAnnotation] = now
	} else {
		repository.Annotations[v1alpha1.PushedAnnotation] = now + " " + source
	}
	return s.Client.Patch(ctx, repository, client.MergeFrom(before))
}
