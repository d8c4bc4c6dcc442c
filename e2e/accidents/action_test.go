//go:build e2e

package accidents

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// action is an action on a tenant.
type action func(*subject)

// all runs several actions in order.
func all(actions ...action) action {
	return func(s *subject) {
		for _, do := range actions {
			do(s)
		}
	}
}

// Actions in the repository that the tenant pushes to. Names and contents may contain $t, $ns and $r.

// remove deletes files or folders in one commit.
func remove(names ...string) action {
	return func(s *subject) {
		s.commit("Remove "+strings.Join(names, ", "), func() {
			for _, name := range names {
				s.must(s.repo.Remove(s.expand(name)))
			}
		})
	}
}

// write writes a file.
func write(name, content string) action {
	return func(s *subject) {
		s.commit("Write "+name, func() { s.must(s.repo.Write(s.expand(name), []byte(s.expand(content)))) })
	}
}

// edit replaces text in a file.
func edit(name, old, now string) action {
	return func(s *subject) {
		s.commit("Edit "+name, func() {
			content, err := s.repo.Read(s.expand(name))
			s.must(err)
			if !strings.Contains(string(content), old) {
				s.t.Fatalf("%s does not hold %q", name, old)
			}
			s.must(s.repo.Write(s.expand(name), []byte(strings.Replace(string(content), old, s.expand(now), 1))))
		})
	}
}

// editTenant replaces text in the tenant's tenant.yaml in the platform repository.
func editTenant(old, now string) action {
	return func(s *subject) {
		s.inRoot("Edit the tenant "+s.tenant, func() {
			name := s.expand("tenants/$t/tenant.yaml")
			content, err := root.Read(name)
			s.must(err)
			s.must(root.Write(name, []byte(strings.Replace(string(content), s.expand(old), s.expand(now), 1))))
		})
	}
}

// move moves a file or folder.
func move(from, to string) action {
	return func(s *subject) {
		s.commit("Move "+from, func() {
			_, err := s.repo.Git(s.t.Context(), "mv", s.expand(from), s.expand(to))
			s.must(err)
		})
	}
}

// revert restores the files and pushes them.
func revert(s *subject) { s.commit("Revert", s.restoreFiles) }

// revertTenant restores the tenant's tenant.yaml in the platform repository and pushes it.
func revertTenant(s *subject) {
	s.inRoot("Revert the tenant "+s.tenant, func() {
		s.must(root.Write(s.expand("tenants/$t/tenant.yaml"), []byte(s.tenantFile)))
	})
}

// Actions with kubectl, as the administrator.

// kubectl runs a command that must succeed.
func kubectl(args string) action {
	return func(s *subject) {
		_, err := platform.Kubectl(s.t.Context(), words(s.expand(args))...)
		s.must(err)
	}
}

// refused runs a command that must fail. Its error becomes the subject's refusal.
func refused(args string) action {
	return func(s *subject) {
		out, err := platform.Kubectl(s.t.Context(), words(s.expand(args))...)
		if err == nil {
			s.t.Fatalf("kubectl %s is not refused: %s", s.expand(args), out)
		}
		s.refusal = err.Error()
	}
}

// words splits a command line. An argument in single quotes may contain spaces.
func words(command string) []string {
	var all []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// none does nothing: kubeop refused the mistake, or recovered without help.
func none(*subject) {}

// requestReconcile requests a reconciliation of the tenant's Repository.
func requestReconcile(s *subject) { requestReconcileOf("repository " + s.repository())(s) }

func requestReconcileOf(what string) action {
	return func(s *subject) {
		kubectl("annotate " + what + " --overwrite reconcile.fluxcd.io/requestedAt=" + strconv.FormatInt(time.Now().UnixNano(), 10))(s)
	}
}

// confirm waits until deletions are held, and confirms them as the Repository's status says.
func confirm(s *subject) {
	s.t.Helper()
	s.confirmIn(s.repository())
}

// confirmIn confirms the deletions that a Repository holds until it holds none. The list may change meanwhile.
func (s *subject) confirmIn(repository string) {
	s.t.Helper()
	held := false
	s.until("what "+repository+" holds is confirmed", func(ctx context.Context) error {
		if err := s.attempted(ctx, repository); err != nil {
			return err // Its status is about an earlier commit.
		}
		now := &v1alpha1.Repository{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Name: repository}, now); err != nil {
			return err
		}
		if !stage.NeedsConfirmation(now) {
			if !held {
				return errors.New("it holds nothing")
			}
			return nil
		}
		held = true
		return errors.Join(platform.ConfirmAs(ctx, now), errors.New("it still holds deletions"))
	})
}
