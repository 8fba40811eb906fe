package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFivePostsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forum, err := newForum()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for range 5 {
			post(&b, forum, "ada")
			time.Sleep(1100 * time.Millisecond)
		}
		post(&b, forum, "ada")
		post(&b, forum, "bob")
		time.Sleep(55 * time.Second) // the first post is now more than a minute old
		post(&b, forum, "ada")
		post(&b, forum, "ada")
		want := `ada posts: Created, "requests";r=4;t=60
ada posts: Created, "requests";r=3;t=60
ada posts: Created, "requests";r=2;t=60
ada posts: Created, "requests";r=1;t=60
ada posts: Created, "requests";r=0;t=60
ada posts: Too Many Requests, "requests";r=0;t=59, again in 55 s
bob posts: Created, "requests";r=4;t=60
ada posts: Created, "requests";r=0;t=60
ada posts: Too Many Requests, "requests";r=0;t=60, again in 1 s
`
		if got := b.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}
