/* link.h - the connections between the devices of a group's processes. Private to libgrad/group/. */
#ifndef LG_GROUP_LINK_H
#define LG_GROUP_LINK_H

#include "group/group.h"

/* Carries out an errand, after those before it, and waits for it; false, with LG_ERR_COMM: the group is broken. */
bool lg__group_errand(lg_group *g, const char *op, lg__errand *e);
/* An operation on that many bytes, about which all say the same name. */
lg__joint lg__bytes_joint(lg__together what, int64_t count, const char *name);
/* Why g's link was given up; NULL: there is none, or it is whole. */
const char *lg__link_why(const lg_group *g);
/* Ends g's link, if there is one. broken: not all ranks may be there. */
void lg__link_leave(lg_group *g, bool broken);

#endif
