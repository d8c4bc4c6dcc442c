package repository

import "github.com/kubeop/kubeop/gitops/identity"

// revision returns the commit that declares an object: of a preview's object, that of the branch.
func (s *scope) revision(ref identity.Ref) string {
	if from := s.found.OriginOf(ref); from != nil {
		return from.Revision
	}
	return s.commit.Revision
}

// author returns the author of that commit.
func (s *scope) author(ref identity.Ref) string {
	if from := s.found.OriginOf(ref); from != nil {
		return from.Author
	}
	return s.commit.Author
}
