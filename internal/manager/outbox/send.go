package outbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/webhooksign"
	"github.com/kubeop/kubeop/internal/store"
)

// maxAnswer is how many bytes of an answer are read and kept.
const maxAnswer = 1 << 10

// notAnswering is after how many failures in a row a webhook counts as not answering, so that all its messages that are a day old are parked.
const notAnswering = 5

// goneAnswer is the reason for disabling a webhook that answers 410, as Standard Webhooks recommends.
const goneAnswer = "It answered 410 Gone, so it wants no more messages."

// RefusedError says that the address of a webhook is not allowed.
type RefusedError struct{ Why string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Why }

// result is the result of an attempt. Without a status there was no answer.
type result struct {
	status int
	answer string
	// wanted is the pause that the webhook asks for.
	wanted time.Duration
}

func (r result) delivered() bool { return r.status >= 200 && r.status < 300 }

// send makes an attempt, and records how it ended. If that cannot be recorded, the message is sent again when the claim ends, with the same id.
func (s *Sender) send(ctx context.Context, to store.DueWebhook, d store.Delivery, claim string) {
	log := logr.FromContextOrDiscard(ctx).WithValues("webhook", to.ID, "message", d.Message.ID)
	limited, cancel := context.WithTimeout(ctx, Timeout+storeTimeout)
	defer cancel()
	w, err := s.Store.GetWebhook(limited, "", to.ID)
	switch {
	case errors.Is(err, store.ErrNotFound): // It was deleted, and its messages with it.
		s.places.forget(to.ID)
		return
	case err != nil || w.Disabled:
		if err != nil {
			log.Error(err, "Reading a webhook")
		}
		if err := s.Store.ReleaseDelivery(limited, d.ID, claim); err != nil {
			log.Error(err, "Giving up a message that was not sent")
		}
		return
	}
	o := s.try(limited, log, w, d)
	o.Claim = claim
	limited, cancel = context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.Store.FinishAttempt(limited, o); err != nil {
		log.Error(err, "Recording an attempt. The message is sent again, with the same id")
		return
	}
	if !o.Held.IsZero() {
		return
	}
	s.Metrics.count(o.State)
	log.V(1).Info("Sent", "type", d.Type, "state", o.State, "status", o.Status)
}

// try makes an attempt, unless the message cannot be signed.
func (s *Sender) try(ctx context.Context, log logr.Logger, w store.Webhook, d store.Delivery) store.Outcome {
	secrets, err := s.secrets(w, s.Now())
	if err != nil {
		return s.hold(log, d, err)
	}
	r := s.attempt(ctx, w, d, secrets)
	o := s.outcome(d, r)
	if r.status == http.StatusGone {
		o.GoneURL = w.URL
		log.Info("A webhook answered that it is gone, and is disabled", "tenant", w.Tenant)
	}
	return o
}

// hold leaves a message waiting because the secret of its webhook cannot be decrypted. That is not the receiver's fault, so it does not count as an attempt.
func (s *Sender) hold(log logr.Logger, d store.Delivery, why error) store.Outcome {
	now := s.Now()
	if s.places.hold(d.Webhook, now, why) {
		log.Error(why, "Messages wait for a webhook, because its secret cannot be decrypted")
	}
	d.Due, d.Status, d.Answer = now.Add(heldRest), 0, "It was not sent: the manager cannot decrypt the secret of the webhook. Its log has the reason."
	return store.Outcome{Delivery: d, Held: now}
}

// Check returns why messages wait although their webhooks may answer, nil if none do: the secrets that sign them cannot be decrypted.
func (s *Sender) Check(context.Context) error {
	if _, err := s.Keys(); err != nil {
		return err
	}
	if n, one, why := s.places.held(s.Now()); n > 0 {
		return fmt.Errorf("messages wait for %d webhooks, such as %s: %w", n, one, why)
	}
	return nil
}

// outcome returns what to record about a message after an attempt.
func (s *Sender) outcome(d store.Delivery, r result) store.Outcome {
	now := s.Now()
	d.Attempts++
	d.Tried, d.Status, d.Answer = now, r.status, r.answer
	o := store.Outcome{}
	if r.delivered() {
		s.places.answered(d.Webhook)
		d.State = store.Delivered
	} else {
		if s.places.failed(d.Webhook, now, r.wanted) >= notAnswering {
			o.Expired = now.Add(-GivesUp)
		}
		again := false
		if d.Due, again = next(d.Since, now, d.Attempts, s.Jitter(), r.wanted); !again {
			d.State = store.Parked
		}
	}
	o.Delivery = d
	return o
}

// attempt sends a message once, signed by secrets.
func (s *Sender) attempt(ctx context.Context, w store.Webhook, d store.Delivery, secrets []string) result {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	now := s.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(d.Body))
	if err != nil {
		return result{answer: "It was not sent: the URL of the webhook cannot be used."}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "kubeop")
	if err := (webhooksign.Message{ID: d.Message.ID, At: now, Body: d.Body}).Sign(r.Header, secrets...); err != nil {
		return result{answer: "It was not sent: " + err.Error() + "."}
	}
	client := &http.Client{Transport: s.Receivers, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return result{answer: whyNot(err)}
	}
	// The rest of the answer is not needed.
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusGone {
		return result{status: answer.StatusCode, answer: goneAnswer}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil && len(body) == 0 {
		body = []byte("The answer could not be read.")
	}
	return result{status: answer.StatusCode, answer: printed(body), wanted: retryAfter(answer, now)}
}

// secrets returns the secrets that sign now.
func (s *Sender) secrets(w store.Webhook, now time.Time) (all []string, err error) {
	keys, err := s.Keys()
	if err != nil {
		return nil, err
	}
	sealed := []store.Sealed{w.Secret}
	if w.Previous.ID != "" && now.Before(w.PreviousUntil) {
		sealed = append(sealed, w.Previous)
	}
	for _, one := range sealed {
		secret, err := keys.Open(kms.Place{Table: one.Kind, ID: one.ID}, kms.Sealed{Key: one.Key, Data: one.Data})
		if err != nil {
			return nil, err
		}
		all = append(all, string(secret))
	}
	return all, nil
}

// whyNot says, for the owner of the webhook, why there was no answer. It leaves out addresses in the network of the manager, and the URL, which may
// have a secret in it.
func whyNot(err error) string {
	var (
		refused *RefusedError
		number  syscall.Errno
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Why
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("No answer within %s.", Timeout)
	case errors.As(err, &cert):
		return "The certificate of the host is not valid: " + cert.Err.Error() + "."
	case errors.As(err, &number):
		return "The connection failed: " + number.Error() + "."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "The host closed the connection without an answer."
	}
	return "The host does not speak HTTP as expected."
}

// printed returns the printable part of an answer.
func printed(body []byte) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(body), ""))
}
